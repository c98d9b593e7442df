// Files that the command writes. Each is written beside its place and put there when it is whole:
// until then what was there stays, and of a run that fails nothing is left.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servecast {

// Says on stderr what went wrong, once. "-" is stdout. What is no regular file, a terminal or a
// pipe, is written as it comes.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  bool ok() const { return ok_; }
  void Write(std::string_view text);
  bool Close();  // false: something could not be written
  // Into its place. Requires: closed, and all is written.
  bool Place();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void Fail();
  void OpenBeside();

  std::string path_;
  std::string place_, beside_;  // of a regular file: resolved, and where it is written
  int slot_ = -1;               // among those that a signal removes
  std::unique_ptr<std::FILE, CloseFile> file_;
  bool ok_ = true;
};

// A whole file at once. False, with the reason on stderr, when it cannot be written.
bool WriteFile(const std::string& path, const std::string& text);
// Likewise; to standard output where the path is "".
bool WriteOrPrint(const std::string& path, const std::string& text);

// For handlers of signals: removes what is not in its place yet.
void RemoveUnfinishedFiles();

// What must not be written, in a sentence: a file that is read, too, or written twice, by whatever
// spelling. Of `inputs` "" and "-" (stdin) may stand there, of `outputs` "".
std::optional<std::string> Collision(const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs);

}  // namespace servecast
