// Lines from stdin and from tasks that run in processes of their own, one event at a time: what a
// server over stdio listens to. A task that crashes or is stopped ends alone.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace servecast {

class LineHub {
 public:
  static constexpr int kStdin = -1;

  enum class What { kLine, kTooLong, kEnd };
  struct Event {
    What what = What::kEnd;
    int source = kStdin;  // or the number of a task
    std::string line;     // of kLine, without its break
  };

  // A line of stdin beyond `most_bytes` is dropped as it comes, and reported as kTooLong once.
  explicit LineHub(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  ~LineHub();
  LineHub(const LineHub&) = delete;
  LineHub& operator=(const LineHub&) = delete;

  // Runs `work` in a copy of this process; it writes lines to the file descriptor that it is given
  // and may do as it likes with stdin and stdout, which are empty there. Returns the task's number,
  // or kStdin where the system gives no process.
  int Begin(const std::function<void(int out)>& work);
  // Kills the task; no event of it comes any more.
  void Stop(int task);
  std::size_t Running() const { return sources_.size(); }

  // Waits for the next event. A source sends kEnd once, after its last line; then it is gone.
  // REQUIRES: stdin has not ended, or a task runs.
  Event Next();

 private:
  struct Source {
    int number = kStdin;
    int file = 0;
    int process = -1;
    std::string held;       // what has come of lines that are not whole
    std::size_t begin = 0;  // of the next line in it
    bool dropping = false;  // the rest of a line that is too long
  };
  bool TakeLine(Source& source, Event& event);
  bool Read(Source& source);  // false: nothing comes any more
  void Close(Source& source);

  std::size_t most_bytes_;
  int last_ = kStdin;
  bool stdin_ended_ = false;
  Source stdin_;
  std::vector<Source> sources_;  // the tasks that run
};

}  // namespace servecast
