// The kinds of text that can be imported; see kinds.h.
#include "import/kinds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "import/json_members.h"

namespace servecast {

std::span<const ImportReader> ImportReaders() {
  // Machines and models before the servers that are on them.
  static constexpr ImportReader kReaders[] = {
      ReadNvidiaSmi,         //
      ReadHfConfig,          //
      ReadGenerationConfig,  //
      ReadVllmCommand,       //
      ReadSglangCommand,     //
      ReadTrtllmCommand,     //
      ReadRouterCommand,     //
      ReadManifest,          //
      ReadLlmdValues,        //
      ReadKserve,            //
      ReadProductionStack,   //
      ReadDynamo,            //
      ReadKaito,             //
      ReadRayServe,          //
      ReadVllmConfig,        //
      ReadSrtSlurm,          //
      ReadUnitFile,          //
      ReadSlurm,             //
      ReadVllmLog,           //
      ReadBlisCommand,       //
      ReadVidurCommand,      //
      ReadBenchCommand,      //
      ReadBenchPrograms,     //
      ReadBenchResult,       //
      ReadBenchReports,      //
      ReadBenchPrinted,      //
      ReadPrometheus,        //
      ReadScalers,           //
      ReadEndpointPicker,    //
  };
  return kReaders;
}

bool IsOtherManifest(const nlohmann::json& document) {
  static constexpr std::string_view kKinds[] = {"LLMInferenceService",
                                                "LLMInferenceServiceConfig",
                                                "InferenceService",
                                                "VLLMRuntime",
                                                "DynamoGraphDeployment",
                                                "DynamoComponentDeployment",
                                                "RayService",
                                                "HorizontalPodAutoscaler",
                                                "ScaledObject",
                                                "Workspace",
                                                "EndpointPickerConfig",
                                                "ServingRuntime",
                                                "ClusterServingRuntime"};
  const std::string kind = TextIn(document, "kind");
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

}  // namespace servecast
