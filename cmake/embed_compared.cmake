# cmake -DOUTPUT=file.cpp -DINPUT=presets/compared.json -DLEFT_OUT=presets/left_out.json
#   -P embed_compared.cmake
# Writes the rows of INPUT and LEFT_OUT as the arrays of core/src/cost/compared.h.
file(READ ${INPUT} text)
string(JSON all GET "${text}" rows)
string(JSON count LENGTH "${all}")
math(EXPR last "${count} - 1")
set(rows "")
foreach(i RANGE ${last})
  string(JSON row GET "${all}" ${i})
  foreach(key model gpu engine what with runs most_gpus)
    string(JSON ${key} GET "${row}" ${key})
  endforeach()
  set(measured 0)
  set(bit 1)
  set(errors "")
  foreach(figure tpot e2e ttft ttft_p99) # In the order of kComparedFigures.
    string(JSON error ERROR_VARIABLE none GET "${row}" ${figure})
    if(none STREQUAL NOTFOUND)
      foreach(key median p90 bias)
        string(JSON ${key} GET "${error}" ${key})
        if(NOT ${key} MATCHES "[.e]")
          string(APPEND ${key} ".0")
        endif()
      endforeach()
      string(APPEND errors "{${median}F, ${p90}F, ${bias}F}, ")
      math(EXPR measured "${measured} + ${bit}")
    else()
      string(APPEND errors "{}, ")
    endif()
    math(EXPR bit "${bit} * 2")
  endforeach()
  string(APPEND rows "    {\"${model}\", \"${gpu}\", \"${engine}\", \"${what}\", \"${with}\", "
         "${runs}, ${most_gpus}, ${measured}, {{${errors}}}},\n")
endforeach()
file(READ ${LEFT_OUT} text)
string(JSON all GET "${text}" rows)
string(JSON count LENGTH "${all}")
math(EXPR last "${count} - 1")
set(left_out "")
foreach(i RANGE ${last})
  string(JSON row GET "${all}" ${i})
  foreach(key model gpu engine what with)
    string(JSON ${key} GET "${row}" ${key})
  endforeach()
  set(measured 0)
  set(bit 1)
  set(errors "")
  foreach(figure tpot e2e ttft ttft_p99)
    string(JSON error ERROR_VARIABLE none GET "${row}" ${figure})
    if(none STREQUAL NOTFOUND)
      string(APPEND errors "${error}F, ")
      math(EXPR measured "${measured} + ${bit}")
    else()
      string(APPEND errors "0.0F, ")
    endif()
    math(EXPR bit "${bit} * 2")
  endforeach()
  string(APPEND left_out "    {\"${model}\", \"${gpu}\", \"${engine}\", \"${what}\", "
         "\"${with}\", ${measured}, {${errors}}},\n")
endforeach()
file(
  WRITE ${OUTPUT}.new
  "// Generated from presets/compared.json and presets/left_out.json by cmake/embed_compared.cmake.\n"
  "#include \"cost/compared.h\"\n\n"
  "namespace servecast {\nnamespace {\n\n"
  "constexpr Compared kRows[] = {\n${rows}};\n\n"
  "constexpr LeftOut kLeftOut[] = {\n${left_out}};\n\n}  // namespace\n\n"
  "std::span<const Compared> ComparedRuns() { return kRows; }\n"
  "std::span<const LeftOut> LeftOutRuns() { return kLeftOut; }\n\n"
  "}  // namespace servecast\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
