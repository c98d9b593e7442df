# cmake -DOUTPUT=file.cpp -DPRESETS=folder -DSOURCES=bool -P embed_presets.cmake
# Writes every PRESETS/KIND/ID.json into one .cpp, sorted by kind then id; the declarations are in
# core/src/io/embedded_presets.h. Texts become adjacent raw literals of at most about 8 KB, cut at
# line ends: compilers bound the length of one literal, and no character may be cut in two.
set(limit 8000)
set(rows "")
set(count 0)
set(kinds engines hardware models scenarios workloads)
if(SOURCES) # Nor does it compare with measured servers.
  list(APPEND kinds measured_hardware measured_models)
  list(SORT kinds)
endif()
foreach(kind IN LISTS kinds)
  file(GLOB files LIST_DIRECTORIES false ${PRESETS}/${kind}/*.json)
  list(SORT files)
  foreach(file IN LISTS files)
    get_filename_component(id ${file} NAME_WLE)
    file(READ ${file} text)
    if(NOT SOURCES) # The page does not show them; they are a fiftieth of what it downloads.
      string(REGEX REPLACE "  \"sources\": {[^{}]*},\n" "" text "${text}")
    endif()
    set(literals "")
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
      string(APPEND literals "R\"preset(${head})preset\"\n")
    endwhile()
    string(APPEND literals "R\"preset(${text})preset\"")
    string(APPEND rows "    {\"${kind}\", \"${id}\", ${literals}},\n")
    math(EXPR count "${count} + 1")
  endforeach()
endforeach()
if(count EQUAL 0)
  set(rows "    {\"\", \"\", \"\"},\n") # An array of no elements is not C++.
endif()
file(
  WRITE ${OUTPUT}.new
  "// Generated from presets/ by cmake/embed_presets.cmake.\n"
  "#include \"io/embedded_presets.h\"\n\n"
  "namespace servecast {\n\n"
  "const EmbeddedPreset kEmbeddedPresets[] = {\n${rows}};\n"
  "const int kEmbeddedPresetCount = ${count};\n\n"
  "}  // namespace servecast\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
