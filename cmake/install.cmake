# cmake --install: the command with its manual page and what shells complete, and the engine as a library:
# headers, static libraries, and a package for find_package(servecast).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS servecast RUNTIME)
install(TARGETS servecast_core servecast_fmt ARCHIVE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/core/include/servecast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(generated ${PROJECT_BINARY_DIR}/generated)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/servecast-config.cmake.in ${generated}/servecast-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/servecast
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${generated}/servecast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/servecast-config.cmake ${generated}/servecast-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/servecast)

if(CMAKE_CROSSCOMPILING)
  return()
endif()
# printed(FILE FOLDER WORD...): what the command prints, as a file.
function(printed file folder)
  list(JOIN ARGN "\" \"" words)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:servecast>\" \"${words}\"
                OUTPUT_FILE \"${generated}/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${generated}/${file} DESTINATION ${folder})
endfunction()
printed(servecast.1 ${CMAKE_INSTALL_MANDIR}/man1 man)
printed(servecast ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
printed(servecast.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
printed(_servecast ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
