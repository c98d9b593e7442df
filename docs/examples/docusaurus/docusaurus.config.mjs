export default {
  title: 'Capacity notes',
  url: 'https://example.org',
  baseUrl: '/notes/',
  scripts: [{ src: 'https://HOST/servecast-embed.js', async: true }],
  presets: [['classic', { docs: { routeBasePath: '/' }, blog: false }]],
  // As the reader has it, which a forecast follows, too.
  themeConfig: { colorMode: { respectPrefersColorScheme: true } },
};
