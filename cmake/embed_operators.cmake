# cmake -DOUTPUT=file.cpp -DFOLDER=presets/operators -P embed_operators.cmake
# Writes every FOLDER/ID.json, sorted by id, as the arrays of core/src/cost/operator_tables.h.
file(GLOB files LIST_DIRECTORIES false ${FOLDER}/*.json)
list(SORT files)

# A JSON array of integers as a C++ array.
function(array_of out name type json)
  string(REGEX REPLACE "[][ \t\r\n]" "" numbers "${json}")
  set(${out} "constexpr ${type} ${name}[] = {${numbers}};\n" PARENT_SCOPE)
endfunction()

set(arrays "")
set(sets "")
set(number 0)
foreach(file IN LISTS files)
  file(READ ${file} text)
  get_filename_component(id ${file} NAME_WLE)
  string(JSON name GET "${text}" name)
  string(JSON document GET "${text}" document)
  string(JSON source GET "${document}" source)
  foreach(key peak_bf16_tflops peak_fp8_tflops peak_fp4_tflops memory_bandwidth_gb_s
              interconnect_gb_s prefill_kv_token_ns prefill_tile small_kernel_value_ps)
    string(JSON ${key} GET "${document}" ${key})
  endforeach()
  string(JSON tables GET "${document}" tables)
  string(JSON count LENGTH "${tables}")
  math(EXPR last "${count} - 1")
  set(rows "")
  foreach(i RANGE ${last})
    string(JSON table GET "${tables}" ${i})
    string(JSON op GET "${table}" op)
    string(JSON type GET "${table}" type)
    string(JSON floor GET "${table}" floor_us)
    string(JSON shape GET "${table}" shape)
    string(REGEX REPLACE "[][ \t\r\n]" "" shape "${shape}")
    foreach(axis a b c)
      string(JSON json GET "${table}" ${axis})
      array_of(array k${number}Axis_${axis} std::int64_t "${json}")
      string(APPEND arrays "${array}")
    endforeach()
    string(JSON json GET "${table}" codes)
    array_of(array k${number}Codes std::int8_t "${json}")
    string(APPEND arrays "${array}")
    string(APPEND rows "    {\"${op}\", \"${type}\", ${floor}, {${shape}}, "
           "{{k${number}Axis_a, k${number}Axis_b, k${number}Axis_c}}, k${number}Codes},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  string(APPEND arrays "constexpr OperatorTable kTables${number}[] = {\n${rows}};\n")
  string(APPEND sets "      {\"${id}\", \"${name}\", \"${source}\", ${peak_bf16_tflops}, ${peak_fp8_tflops}, "
         "${peak_fp4_tflops}, ${memory_bandwidth_gb_s}, ${interconnect_gb_s}, ${prefill_kv_token_ns}, ${prefill_tile}, "
         "${small_kernel_value_ps}, kTables${number}},\n")
endforeach()
file(
  WRITE ${OUTPUT}.new
  "// Generated from presets/operators by cmake/embed_operators.cmake.\n"
  "#include \"cost/operator_tables.h\"\n\n"
  "namespace servecast {\nnamespace {\n\n${arrays}\n"
  "constexpr OperatorSet kSets[] = {\n${sets}};\n\n}  // namespace\n\n"
  "std::span<const OperatorSet> OperatorSets() { return kSets; }\n\n"
  "}  // namespace servecast\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
