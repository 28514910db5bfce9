# The contents of `cmake --install` and of packages. All paths are relative: the tree may be moved. GPU
# modules are installed where they are built, in lib/fp8kv, where the program looks for them.
set(bin bin)
set(share share)
if(SKBUILD)  # a wheel: its scripts, and what goes beside them
  set(bin ${SKBUILD_SCRIPTS_DIR})
  set(share ${SKBUILD_DATA_DIR}/share)
endif()

# Completions and manual pages, which the program itself prints.
set(pages ${PROJECT_BINARY_DIR}/share)
add_custom_command(OUTPUT ${pages}/man/man1/fp8kv.1 VERBATIM
  DEPENDS fp8kv ${CMAKE_CURRENT_LIST_DIR}/write_pages.cmake
  COMMENT "Writing completions and manual pages"
  COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:fp8kv> -D FOLDER=${pages}
    -P ${CMAKE_CURRENT_LIST_DIR}/write_pages.cmake)
add_custom_target(fp8kv_pages ALL DEPENDS ${pages}/man/man1/fp8kv.1)

install(TARGETS fp8kv RUNTIME DESTINATION ${bin})
install(DIRECTORY ${pages}/ DESTINATION ${share})
install(FILES LICENSE README.md packaging/copyright DESTINATION ${share}/doc/fp8kv)
install(DIRECTORY docs DESTINATION ${share}/doc/fp8kv)

set(CPACK_GENERATOR DEB TZST)
set(CPACK_PACKAGE_VENDOR "the fp8kv authors")
set(CPACK_PACKAGE_CONTACT "fp8kv <noreply@fp8kv.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "FP8 KV-cache scales for LLM checkpoints")
set(CPACK_PACKAGE_DESCRIPTION "fp8kv makes the scales that a large language model needs to keep its
KV cache in FP8, shows whether they are needed, and puts them into the checkpoint in the form that
a runtime (vLLM, SGLang, TGI and others) loads. It runs without Python and without a GPU.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_FILE_NAME "fp8kv-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
