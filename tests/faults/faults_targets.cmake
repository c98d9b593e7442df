# servecast_fault_tests: the engine with faults planted (faults.cmake), each of which a differential
# test must notice. The copies are made when this target is built, for it alone, so that no edit of
# the engine keeps anything else from being built. Their objects stand before the library's and take
# their places. Native only: the tests fork.

set(planter ${CMAKE_CURRENT_LIST_DIR}/faults.cmake)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${planter})
file(STRINGS ${planter} calls REGEX "^plant_in\\([a-z0-9_]+ [0-9]+")
set(faulty_names)
set(faults)
foreach(call ${calls})
  string(REGEX MATCH "^plant_in\\(([a-z0-9_]+) ([0-9]+)" matched "${call}")
  list(APPEND faulty_names ${CMAKE_MATCH_1})
  list(APPEND faults ${CMAKE_MATCH_2})
endforeach()
list(REMOVE_DUPLICATES faulty_names)
list(REMOVE_DUPLICATES faults)
list(JOIN faults "," faults)

set(faulty_sources)
foreach(name ${faulty_names})
  file(GLOB_RECURSE source ${PROJECT_SOURCE_DIR}/core/src/${name}.cpp)
  set(copy ${PROJECT_BINARY_DIR}/generated/faulty/${name}.cpp)
  add_custom_command(
    OUTPUT ${copy}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} "-DSOURCE=${source}" -DOUTPUT=${copy} -P ${planter}
    DEPENDS ${source} ${planter}
    COMMENT "Planting faults in ${name}.cpp"
    VERBATIM)
  list(APPEND faulty_sources ${copy})
endforeach()

add_executable(servecast_fault_tests EXCLUDE_FROM_ALL faults/faults_test.cpp ${faulty_sources})
target_compile_definitions(servecast_fault_tests PRIVATE SERVECAST_FAULTS=${faults})
target_link_libraries(servecast_fault_tests PRIVATE servecast_testing servecast_googletest
                                                    servecast_flags servecast_deps)
target_compile_options(servecast_fault_tests PRIVATE -O1)
