# Writes the completions and manual pages that PROGRAM prints into FOLDER, as in PREFIX/share.
function(write file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${FOLDER}/${file}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(zsh ${FOLDER}/zsh/site-functions)
set(zsh_of_debian ${FOLDER}/zsh/vendor-completions)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER}/bash-completion/completions ${FOLDER}/fish/vendor_completions.d ${zsh}
  ${zsh_of_debian} ${FOLDER}/man/man1)
write(bash-completion/completions/fp8kv completions bash)
write(fish/vendor_completions.d/fp8kv.fish completions fish)
write(zsh/site-functions/_fp8kv completions zsh)
file(COPY ${zsh}/_fp8kv DESTINATION ${zsh_of_debian})

execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE ".*\nCommands:\n(.*)\nOptions:.*" "\\1" commands "${help}")
string(REGEX MATCHALL "(^|\n)  [a-z]+ " commands "${commands}")
list(LENGTH commands count)
if(count EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --help lists no commands")
endif()
foreach(command IN LISTS commands)
  string(STRIP "${command}" command)
  write(man/man1/fp8kv-${command}.1 man ${command})
endforeach()
write(man/man1/fp8kv.1 man)  # last: the target's output
