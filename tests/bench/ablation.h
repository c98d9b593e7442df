// The options after SFLLM, each on and off.
#pragma once

namespace servecast {

// Prints tables. Simulated figures: equal on every machine.
void Ablation();

}  // namespace servecast
