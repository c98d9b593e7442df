// See line_hub.h.
#include "host/line_hub.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

namespace servecast {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;

void ReplaceByNothing(int file) {
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0) return;
  dup2(nothing, file);
  close(nothing);
}

}  // namespace

LineHub::~LineHub() {
  while (!sources_.empty()) Stop(sources_.back().number);
}

int LineHub::Begin(const std::function<void(int out)>& work) {
  int ends[2];
  if (pipe(ends) != 0) return kStdin;
  std::fflush(nullptr);  // else the copy writes it, too
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    for (const Source& other : sources_) close(other.file);
    ReplaceByNothing(STDIN_FILENO);
    ReplaceByNothing(STDOUT_FILENO);
    work(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    return kStdin;
  }
  Source& source = sources_.emplace_back();
  source.number = ++last_;
  source.file = ends[0];
  source.process = process;
  return source.number;
}

void LineHub::Close(Source& source) {
  close(source.file);
  while (waitpid(source.process, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void LineHub::Stop(int task) {
  const auto found = std::find_if(sources_.begin(), sources_.end(),
                                  [task](const Source& each) { return each.number == task; });
  if (found == sources_.end()) return;
  kill(found->process, SIGKILL);
  Close(*found);
  sources_.erase(found);
}

bool LineHub::TakeLine(Source& source, Event& event) {
  const std::size_t end = source.held.find('\n', source.begin);
  const std::size_t size = std::min(end, source.held.size()) - source.begin;
  const bool too_long = source.number == kStdin && size > most_bytes_;
  event.source = source.number;
  if (end == std::string::npos) {
    source.held.erase(0, source.begin);
    source.begin = 0;
    if (!too_long && !source.dropping) return false;
    source.held.clear();
    event.what = What::kTooLong;
    return !std::exchange(source.dropping, true);
  }
  event.line = source.held.substr(source.begin, size);
  source.begin = end + 1;
  if (std::exchange(source.dropping, false)) return TakeLine(source, event);
  event.what = too_long ? What::kTooLong : What::kLine;
  return true;
}

bool LineHub::Read(Source& source) {
  const std::size_t before = source.held.size();
  source.held.resize(before + kPiece);
  ssize_t got = 0;
  do got = read(source.file, source.held.data() + before, kPiece);
  while (got < 0 && errno == EINTR);
  source.held.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got > 0) return true;
  // A last line without its break.
  const bool rest = source.held.size() > source.begin;
  if (rest) source.held += '\n';
  return rest;
}

LineHub::Event LineHub::Next() {
  for (;;) {
    Event event;
    for (Source& source : sources_) {
      if (TakeLine(source, event)) return event;
    }
    if (TakeLine(stdin_, event)) return event;
    std::vector<pollfd> waits;
    for (const Source& source : sources_) waits.push_back({source.file, POLLIN, 0});
    if (!stdin_ended_) waits.push_back({STDIN_FILENO, POLLIN, 0});
    if (poll(waits.data(), static_cast<nfds_t>(waits.size()), -1) < 0) continue;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents == 0) continue;
      const bool task = i < sources_.size();
      Source& source = task ? sources_[i] : stdin_;
      if (Read(source)) break;
      event.what = What::kEnd;
      event.source = source.number;
      if (task) {
        Close(source);
        sources_.erase(sources_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        stdin_ended_ = true;
      }
      return event;
    }
  }
}

}  // namespace servecast
