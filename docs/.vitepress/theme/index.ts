import DefaultTheme from 'vitepress/theme';
import Live from './Live.vue';
import Said from './Said.vue';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Live', Live);
    app.component('Said', Said);
  },
};
