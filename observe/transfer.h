// One try of a request: sent by libcurl, its stream read as it comes, each chunk stamped.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "observe/answers.h"
#include "observe/event_stream.h"
#include "observe/run_clock.h"

namespace servecast {

// CURL and CURLM are both void.
struct EasyEnd {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiEnd {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListEnd {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlEasy = std::unique_ptr<CURL, EasyEnd>;
using CurlMulti = std::unique_ptr<CURLM, MultiEnd>;
using CurlList = std::unique_ptr<curl_slist, ListEnd>;

// What all requests to a server share. A key is in the headers, and out of every message.
class Server {
 public:
  Server(std::string url, std::string key);
  const std::string& url() const { return url_; }
  curl_slist* headers() const { return headers_.get(); }
  // The text without the key.
  std::string Without(std::string text) const;
  // Its address, headers and protocols; never to another host.
  void Address(CURL* easy, const std::string& path) const;

 private:
  std::string url_, key_;
  CurlList headers_;
};

class Transfer {
 public:
  // `server` and `clock` outlive it.
  Transfer(const Server& server, const RunClock& clock);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Makes ready to send `body`, for `answer`, which outlives the transfer. `patience`: of `limit`
  // it is the client's that ends it, as the scenario says. `asked`: tokens.
  void Take(Answer& answer, std::string body, std::int64_t asked);
  void Begin(TimeNs limit, bool patience);
  // The try is over as libcurl says: writes outcome, error and times into the answer.
  void Finish(CURLcode code);
  // It is ended from outside, or for it has been silent for `stall`.
  void Interrupt();
  void EndSilent(TimeNs stall);
  // When something last came of it, or it began.
  TimeNs heard() const { return heard_; }

  CURL* easy() const { return easy_.get(); }
  Answer& answer() const { return *answer_; }
  // Of the answer that refused, seconds; 0: it does not say.
  double RetryAfter() const;
  // Wall clock of this machine, and what the answer's Date said; nullopt without one.
  struct Dated {
    double sent_s, received_s, date_s;
  };
  const std::optional<Dated>& dated() const { return dated_; }

 private:
  static std::size_t TakeBytes(char* bytes, std::size_t one, std::size_t count, void* self);
  static std::size_t TakeHeader(char* bytes, std::size_t one, std::size_t count, void* self);
  static int Connected(void* self, char*, char*, int, int);
  bool Body(std::string_view bytes);
  void Event(std::string_view data, TimeNs now);
  long Status() const;
  void Fail(Outcome outcome, std::string error);
  void FailAs(CURLcode code, long status);

  const Server& server_;
  const RunClock& clock_;
  CurlEasy easy_;
  char curl_error_[CURL_ERROR_SIZE] = {};
  Answer* answer_ = nullptr;
  std::string body_, refusal_;
  std::int64_t asked_ = 0, received_ = 0;
  TimeNs limit_ = 0, heard_ = 0;
  bool patience_ = false;
  EventStream events_;
  std::optional<Outcome> failed_;
  bool whole_ = false, finished_ = false;  // [DONE] came; a reason why the output ended
  std::optional<Dated> dated_;
};

}  // namespace servecast
