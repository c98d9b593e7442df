# cmake -DOUTPUT=file.cpp -DINPUT=presets/evidence.json -P embed_evidence.cmake
# Writes INPUT as the arrays of core/src/evidence/measured_points.h.
file(READ ${INPUT} text)

# A number of C++: with a point, so that it is a double.
function(number json out)
  string(JSON value GET "${json}" ${ARGN})
  if(NOT value MATCHES "[.e]")
    string(APPEND value ".0")
  endif()
  set(${out} ${value} PARENT_SCOPE)
endfunction()

string(JSON all GET "${text}" setups)
string(JSON count LENGTH "${all}")
math(EXPR last "${count} - 1")
set(setups "")
set(points "")
foreach(i RANGE ${last})
  string(JSON setup GET "${all}" ${i})
  set(names "")
  foreach(key laboratory model form weights gpu engine run)
    string(JSON name GET "${setup}" ${key})
    string(APPEND names "\"${name}\", ")
  endforeach()
  string(JSON expert_parallel GET "${setup}" expert_parallel)
  if(expert_parallel)
    set(expert_parallel true)
  else()
    set(expert_parallel false)
  endif()
  number("${setup}" tensor_parallel tensor_parallel)
  number("${setup}" active_billions active_billions)
  number("${setup}" gpus gpus)
  string(APPEND setups "    {${names}${expert_parallel}, ${tensor_parallel}, ${active_billions}, "
         "${gpus}},\n")
  string(JSON rows GET "${setup}" rows)
  string(JSON row_count LENGTH "${rows}")
  math(EXPR last_row "${row_count} - 1")
  foreach(j RANGE ${last_row})
    set(numbers "")
    foreach(column RANGE 3)
      number("${rows}" value ${j} ${column})
      string(APPEND numbers ", ${value}")
    endforeach()
    string(APPEND points "    {${i}${numbers}},\n")
  endforeach()
endforeach()
string(JSON scale GET "${text}" scale)
number("${scale}" q q)
number("${scale}" prompt prompt)
number("${scale}" first_high first_high)
foreach(side low high)
  number("${scale}" dense p99_${side} 0)
  number("${scale}" experts p99_${side} 1)
  set(p99_${side} "{${dense}, ${experts}}")
endforeach()
file(
  WRITE ${OUTPUT}.new
  "// Generated from presets/evidence.json by cmake/embed_evidence.cmake.\n"
  "#include \"evidence/measured_points.h\"\n\n"
  "namespace servecast {\nnamespace {\n\n"
  "constexpr EvidenceSetup kSetups[] = {\n${setups}};\n\n"
  "constexpr EvidenceRow kRows[] = {\n${points}};\n\n"
  "constexpr FieldScale kScale = {${q}, ${prompt}, ${p99_low}, ${p99_high}, ${first_high}};\n\n"
  "}  // namespace\n\n"
  "std::span<const EvidenceSetup> EvidenceSetups() { return kSetups; }\n"
  "std::span<const EvidenceRow> EvidenceRows() { return kRows; }\n"
  "const FieldScale& MeasuredScale() { return kScale; }\n\n"
  "}  // namespace servecast\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
