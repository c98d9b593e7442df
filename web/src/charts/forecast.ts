// The charts of the forecast and what draws them: fetched when the verdict is there, as nothing before it needs them.
import './series-chart';
import './tail-chart';
