// See output_file.h.
#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/printable.h"

namespace servecast {
namespace {

namespace fs = std::filesystem;

// Where a handler finds the names of files that are being written. A name is whole before its slot
// is `used`, and stays until after.
struct Slot {
  volatile std::sig_atomic_t used = 0;
  std::array<char, 4096> name{};
};
std::array<Slot, 16> slots;

int TakeSlot(const std::string& name) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].used != 0 || name.size() >= slots[i].name.size()) continue;
    std::memcpy(slots[i].name.data(), name.c_str(), name.size() + 1);
    slots[i].used = 1;
    return static_cast<int>(i);
  }
  return -1;
}

void FreeSlot(int slot) {
  if (slot >= 0) slots[static_cast<std::size_t>(slot)].used = 0;
}

bool StartsWith(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

// An open file under a name of the kernel's, such as /dev/stdout, keeps that name only.
bool IsOfKernel(const std::string& path) {
  return StartsWith(path, "/dev/") || StartsWith(path, "/proc/");
}

// Without links and dots, whether it is there or not.
std::string Resolved(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  const fs::path place = error ? fs::path() : fs::weakly_canonical(whole, error);
  return error ? path : place.string();
}

// What a file is, whatever it is called: the same for two names of one file. nullopt: nothing that
// could be overwritten.
std::optional<std::string> Identity(const std::string& path, bool input) {
  struct stat found {};
  const bool is =
      input && path == "-" ? fstat(STDIN_FILENO, &found) == 0 : stat(path.c_str(), &found) == 0;
  if (is ? !S_ISREG(found.st_mode) : input) return std::nullopt;
  return is ? fmt::format("{}:{}", found.st_dev, found.st_ino) : Resolved(path);
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  struct stat found {};
  const bool there = stat(path.c_str(), &found) == 0;
  if (path == "-") {
    std::fflush(stdout);
    file_.reset(fdopen(dup(STDOUT_FILENO), "wb"));
  } else if (IsOfKernel(path) || (there && !S_ISREG(found.st_mode))) {
    file_.reset(std::fopen(path.c_str(), "wb"));
  } else {
    OpenBeside();
    if (file_ && there) fchmod(fileno(file_.get()), found.st_mode & 07777);
  }
  if (!file_) Fail();
}

void OutputFile::OpenBeside() {
  static int count = 0;
  place_ = Resolved(path_);
  const fs::path folder = fs::path(place_).parent_path();
  beside_ = (folder / fmt::format(".servecast-{}-{}.part", getpid(), count++)).string();
  slot_ = TakeSlot(beside_);
  const int file = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) {
    FreeSlot(slot_);
    beside_.clear();
    return;
  }
  file_.reset(fdopen(file, "wb"));
}

OutputFile::~OutputFile() {
  file_.reset();
  if (beside_.empty()) return;
  unlink(beside_.c_str());
  FreeSlot(slot_);
}

void OutputFile::Fail() {
  if (ok_) {
    const char* reason = std::strerror(errno);
    fmt::print(stderr, "{}: cannot be written: {}\n", Printable(path_), reason);
  }
  ok_ = false;
}

void OutputFile::Write(std::string_view text) {
  if (ok_ && std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) Fail();
}

bool OutputFile::Close() {
  if (ok_ && std::fclose(file_.release()) != 0) Fail();
  return ok_;
}

bool OutputFile::Place() {
  if (!ok_ || beside_.empty()) return ok_;
  if (std::rename(beside_.c_str(), place_.c_str()) != 0) {
    Fail();
    return false;
  }
  FreeSlot(slot_);
  beside_.clear();
  return true;
}

bool WriteFile(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.Write(text);
  return file.Close() && file.Place();
}

bool WriteOrPrint(const std::string& path, const std::string& text) {
  if (!path.empty()) return WriteFile(path, text);
  fmt::print("{}", text);
  return true;
}

void RemoveUnfinishedFiles() {
  for (Slot& slot : slots) {
    if (slot.used != 0) unlink(slot.name.data());
  }
}

std::optional<std::string> Collision(const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    const std::optional<std::string> written = Identity(outputs[i], false);
    if (!written) continue;
    for (const std::string& input : inputs) {
      if (input.empty()) continue;
      const std::optional<std::string> read = Identity(input, true);
      if (read && *read == *written) {
        return fmt::format("{} would be overwritten, and it is read", Printable(outputs[i]));
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!outputs[j].empty() && Identity(outputs[j], false) == written) {
        return fmt::format("{} would be written twice", Printable(outputs[i]));
      }
    }
  }
  return std::nullopt;
}

}  // namespace servecast
