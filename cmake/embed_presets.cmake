# cmake -DOUTPUT=file.cpp -DPRESETS=folder -DALL=bool -P embed_presets.cmake
# Writes the files PRESETS/KIND/ID.json into one .cpp, sorted by kind then id; the declarations are in
# core/src/io/embedded_presets.h and core/src/cost/operator_tables.h. With ALL every file is there;
# without, for the page, those that a visit begins with (PRESETS/menu.json has its models and GPUs), and
# of the others the name and the size (decision 029). Texts become adjacent raw literals of at most about 8 KB, cut at line ends:
# compilers bound the length of one literal, and no character may be cut in two.
cmake_minimum_required(VERSION 3.25)
set(limit 8000)
set(kinds coefficients engines hardware hosts models operators prices scenarios workloads)
set(begins_with engines hardware hosts models scenarios workloads)
file(READ ${PRESETS}/menu.json menu)

# Sets `literals` to `text` as C++.
function(literals_of text)
  set(out "")
  string(LENGTH "${text}" length)
  while(length GREATER limit)
    string(SUBSTRING "${text}" 0 ${limit} head)
    string(FIND "${head}" "\n" cut REVERSE)
    if(cut EQUAL -1)
      message(FATAL_ERROR "${file}: a line over ${limit} bytes")
    endif()
    math(EXPR cut "${cut} + 1")
    string(SUBSTRING "${text}" 0 ${cut} head)
    string(SUBSTRING "${text}" ${cut} -1 text)
    string(LENGTH "${text}" length)
    string(APPEND out "R\"preset(${head})preset\"\n")
  endwhile()
  set(literals "${out}R\"preset(${text})preset\"" PARENT_SCOPE)
endfunction()

set(rows "")
set(operators "")
set(count 0)
foreach(kind IN LISTS kinds)
  file(GLOB files LIST_DIRECTORIES false ${PRESETS}/${kind}/*.json)
  list(SORT files)
  foreach(file IN LISTS files)
    get_filename_component(id ${file} NAME_WLE)
    file(READ ${file} text)
    file(SIZE ${file} size)
    string(REGEX MATCH "\n  \"name\": \"([^\"\\]*)\"" found "${text}")
    if(NOT found)
      message(FATAL_ERROR "${file}: no line with a plain name")
    endif()
    set(name "${CMAKE_MATCH_1}")
    set(in_menu true)
    if(kind STREQUAL "hardware" OR kind STREQUAL "models")
      string(JSON listed GET "${menu}" ${kind})
      string(FIND "${listed}" "\"${id}\"" at)
      if(at EQUAL -1)
        set(in_menu false)
      endif()
    endif()
    if(kind STREQUAL "operators")
      string(JSON peak GET "${text}" document peak_bf16_tflops)
      string(JSON bandwidth GET "${text}" document memory_bandwidth_gb_s)
      string(APPEND operators "      {\"${id}\", ${peak}, ${bandwidth}},\n")
    endif()
    if(ALL OR (in_menu AND kind IN_LIST begins_with))
      if(NOT ALL) # The page does not show them; they are a fiftieth of what it downloads.
        string(REGEX REPLACE "  \"sources\": {[^{}]*},\n" "" text "${text}")
        string(REGEX REPLACE "\n +" "\n" text "${text}")
      endif()
      literals_of("${text}")
    else()
      set(literals "nullptr")
    endif()
    string(APPEND rows "    {\"${kind}\", \"${id}\", \"${name}\", ${in_menu}, ${size}, ${literals}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
endforeach()
file(
  WRITE ${OUTPUT}.new
  "// Generated from presets/ by cmake/embed_presets.cmake.\n"
  "#include \"cost/operator_tables.h\"\n"
  "#include \"io/embedded_presets.h\"\n\n"
  "namespace servecast {\n\n"
  "const EmbeddedPreset kEmbeddedPresets[] = {\n${rows}};\n"
  "const int kEmbeddedPresetCount = ${count};\n\n"
  "std::span<const MeasuredGpu> MeasuredGpus() {\n"
  "  static constexpr MeasuredGpu kGpus[] = {\n${operators}  };\n"
  "  return kGpus;\n}\n\n"
  "}  // namespace servecast\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
