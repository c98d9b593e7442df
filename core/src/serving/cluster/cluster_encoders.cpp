// Requests between the replicas that encode their images and those that compute their prompts.
#include <algorithm>

#include "serving/cluster/cluster.h"

namespace servecast {

// What a replica did of it is done: its embeddings set out or are there, or it is prefilled.
void Cluster::GoOn(RequestId request, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  RequestResults& results = any().results;
  if (results.HandedOver(r)) return Route(gateways_.front(), request, time);
  Encoding& encoding = results.encodings[r];
  if (encoding.arrived >= 0) return Route(GatewayOfPrompt(request), request, time);
  for (const PromptImage& image : any().requests.ImagesOf(request)) {
    encoding.bytes += image.embeds * embed_bytes_;
  }
  embeddings_link_.Start(request, encoding.bytes, time);
  of_embeddings_.Waiting(time, ++travelling_);
  of_embeddings_.Came(time);
}

void Cluster::PassEmbeddings(TimeNs time) {
  for (const RequestId request : embeddings_link_.Pass()) {
    any().results.encodings[static_cast<std::size_t>(request)].arrived = time;
    of_embeddings_.Waiting(time, --travelling_);
    of_embeddings_.Left(time);
    handed_on_.push_back({time, request});
    std::push_heap(handed_on_.begin(), handed_on_.end(), Later);
  }
}

}  // namespace servecast
