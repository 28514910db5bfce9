# Rooms that are compiled together if rooms are compiled whole. That saves a tenth of the work, because
# such rooms include and instantiate much in common. Other builds keep all rooms apart, and there a
# wrong dependency does not link.

# The first room gets the sources of all. The others become empty, and link the first.
function(unite_rooms first)
  foreach(room IN LISTS ARGN)
    get_target_property(folder ${room} SOURCE_DIR)
    get_target_property(sources ${room} SOURCES)
    list(TRANSFORM sources PREPEND ${folder}/)
    target_sources(${first} PRIVATE ${sources})
    get_target_property(libraries ${room} LINK_LIBRARIES)
    list(REMOVE_ITEM libraries ${first} ${ARGN})
    target_link_libraries(${first} PUBLIC ${libraries})
    set_target_properties(${room} PROPERTIES
      SOURCES ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp
      LINK_LIBRARIES ${first}
      INTERFACE_LINK_LIBRARIES ${first}
      FP8KV_EMPTY ON)
  endforeach()
  get_target_property(libraries ${first} LINK_LIBRARIES)
  list(REMOVE_ITEM libraries ${ARGN})
  set_target_properties(${first} PROPERTIES
    LINK_LIBRARIES "${libraries}"
    INTERFACE_LINK_LIBRARIES "${libraries}"
    UNITY_BUILD_BATCH_SIZE 0)
endfunction()

unite_rooms(fp8kv_calib fp8kv_calib_windows fp8kv_calib_drafts)
unite_rooms(fp8kv_checkpoint fp8kv_checkpoint_files fp8kv_checkpoint_model
  fp8kv_checkpoint_identity fp8kv_checkpoint_drafts)
unite_rooms(fp8kv_cli fp8kv_cli_flags fp8kv_cli_commands)
unite_rooms(fp8kv_commands fp8kv_commands_parts)
unite_rooms(fp8kv_config fp8kv_config_describe fp8kv_config_values fp8kv_config_families
  fp8kv_config_groups fp8kv_config_rows)
unite_rooms(fp8kv_files fp8kv_files_output)
unite_rooms(fp8kv_inputs fp8kv_inputs_prompts)
unite_rooms(fp8kv_jinja fp8kv_jinja_values)
unite_rooms(fp8kv_model fp8kv_model_cache fp8kv_model_parts fp8kv_model_parts_feed_forward
  fp8kv_model_parts_scores fp8kv_model_parts_sparse fp8kv_model_parts_streams)
unite_rooms(fp8kv_report fp8kv_report_pages fp8kv_report_tasks)
unite_rooms(fp8kv_scales fp8kv_scales_read fp8kv_scales_read_stores fp8kv_scales_verify
  fp8kv_scales_write)
unite_rooms(fp8kv_scales_rules fp8kv_scales_rules_tables)
unite_rooms(fp8kv_show fp8kv_show_scales fp8kv_show_models fp8kv_show_answers fp8kv_show_attest
  fp8kv_show_eval fp8kv_show_fit fp8kv_show_verify)
unite_rooms(fp8kv_tasks fp8kv_tasks_items fp8kv_tasks_compare)
