# servecast_fault_tests: the engine with faults planted (faults.cmake), each of which a differential
# test must notice. The copies are made when this target is built, for it alone, so that no edit of
# the engine keeps anything else from being built. Their objects stand before the library's and take
# their places: so what is compiled with a faulty source there has to stand here, too. Native only:
# the tests fork.

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

get_target_property(engine_sources servecast_core SOURCES)
list(FILTER engine_sources INCLUDE REGEX "^src/")
list(TRANSFORM engine_sources PREPEND ${PROJECT_SOURCE_DIR}/core/)
set(faulty_groups)
foreach(source IN LISTS engine_sources)
  get_filename_component(name ${source} NAME_WE)
  get_source_file_property(group ${source} TARGET_DIRECTORY servecast_core UNITY_GROUP)
  if(name IN_LIST faulty_names AND group)
    list(APPEND faulty_groups ${group})
  endif()
endforeach()
set(faulty_sources)
foreach(source IN LISTS engine_sources)
  get_filename_component(name ${source} NAME_WE)
  get_source_file_property(group ${source} TARGET_DIRECTORY servecast_core UNITY_GROUP)
  if(name IN_LIST faulty_names)
    set(copy ${PROJECT_BINARY_DIR}/generated/faulty/${name}.cpp)
    add_custom_command(
      OUTPUT ${copy}
      COMMAND ${CMAKE_COMMAND} -DNAME=${name} "-DSOURCE=${source}" -DOUTPUT=${copy} -P ${planter}
      DEPENDS ${source} ${planter}
      COMMENT "Planting faults in ${name}.cpp"
      VERBATIM)
    set(source ${copy})
  elseif(NOT group IN_LIST faulty_groups)
    continue()
  endif()
  list(APPEND faulty_sources ${source})
  if(group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endif()
endforeach()

add_executable(servecast_fault_tests EXCLUDE_FROM_ALL faults/faults_test.cpp ${faulty_sources})
target_compile_definitions(servecast_fault_tests PRIVATE SERVECAST_FAULTS=${faults})
target_link_libraries(servecast_fault_tests PRIVATE servecast_testing servecast_googletest
                                                    servecast_flags servecast_deps)
target_compile_options(servecast_fault_tests PRIVATE -O1)
set_target_properties(servecast_fault_tests PROPERTIES UNITY_BUILD ${SERVECAST_UNITE} UNITY_BUILD_MODE GROUP)
