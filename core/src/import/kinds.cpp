// The kinds of text that can be imported; see kinds.h.
#include "import/kinds.h"

namespace servecast {

std::span<const ImportReader> ImportReaders() {
  // Machines and models before the servers that are on them.
  static constexpr ImportReader kReaders[] = {
      ReadNvidiaSmi,  //
      ReadHfConfig,   //
      ReadGenerationConfig,
      ReadVllmCommand,    //
      ReadSglangCommand,  //
      ReadTrtllmCommand,  //
      ReadManifest,       //
      ReadLlmdValues,     //
      ReadBlisCommand,    //
      ReadVidurCommand,   //
      ReadBenchCommand,   //
      ReadBenchResult,    //
      ReadPrometheus,
  };
  return kReaders;
}

}  // namespace servecast
