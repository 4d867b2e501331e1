"""Every fault known of the system before ours and of products like it, and the tests that would show it here.

The left side says what went wrong there, in a few words; the right side names tests, below tests/. One test checks
that each of them exists.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

#: What went wrong in the system that this one follows.
BEFORE: dict[str, tuple[str, ...]] = {
    "cost read under a misspelt name: every run at $0.00": (
        "acceptance/test_kills.py::test_without_faults_the_ledger_is_the_bill_to_the_cent",
        "unit/records/test_records_laws.py::test_totals_are_the_sum_of_all_charges",
    ),
    "one mode never booked its usage": (
        "acceptance/test_kills.py::test_with_faults_the_bill_is_within_what_the_ledger_says",
    ),
    "tokens of failed lessons, critics and retries lost": (
        "unit/cost/test_cost_ledger.py::test_every_try_is_a_row_that_says_whether_it_was_used_and_why_not",
        "unit/records/test_records_money.py::test_task_failed_by_content_starts_empty_next_time_and_wastes_what_it_spent",
    ),
    "three different totals after a failure and a resume": (
        "unit/engine/test_engine_laws.py::test_total_is_the_sum_of_all_charges_whatever_happened",
        "unit/cost/test_cost_report.py::test_ledger_and_fold_never_disagree_about_money",
    ),
    "dry run left a run that a resume took for done": (
        "acceptance/test_cli_lessons.py::test_lessons_dry_run_shows_the_plan_and_leaves_nothing",
    ),
    "options of the first start forgotten on resume": (
        "acceptance/test_cli_lessons.py::test_lessons_contradicting_settings_name_both_values_and_the_ways_out",
        "unit/engine/test_engine_values.py::test_changed_setting_is_refused_where_nobody_accepts_and_the_run_stays_as_it_was",
    ),
    "old error shown after success": (
        "unit/engine/test_engine_runs.py::test_error_of_a_failed_step_is_gone_once_it_has_succeeded",
        "unit/records/test_records_documents.py::test_head_keeps_a_running_or_failed_step_out_of_the_completed_ones",
    ),
    "start, end and duration all the moment of writing": (
        "unit/engine/test_engine_runs.py::test_clock_that_steps_back_between_records_changes_neither_order_nor_durations",
        "unit/records/test_records_positions.py::test_step_run_again_keeps_its_time_and_clears_its_error",
    ),
    "step that raised left no trace": (
        "acceptance/test_cli_status.py::test_status_shows_steps_costs_and_the_way_on",
        "unit/records/test_records_positions.py::test_step_failed_without_an_edge_is_offered_again_as_a_new_attempt",
    ),
    "death between an outside write and the checkpoint made resume impossible": (
        "contract/test_publisher_contract.py::test_publish_that_dies_leaves_the_old_version_whole_and_can_be_repeated",
        "contract/test_publisher_contract.py::test_publish_twice_gives_the_same_receipt_and_writes_nothing",
        "acceptance/test_death_at_every_write.py::test_death_at_any_call_of_the_disk_costs_only_what_was_in_flight",
    ),
    "one failing item threw away all that were paid before it": (
        "unit/lessons/test_lessons_pipeline.py::test_pipeline_one_failing_lesson_loses_no_other_and_resume_makes_only_that_one",
        "unit/engine/test_engine_runs.py::test_map_gives_values_in_item_order_and_reuses_them",
    ),
    "plan checked against its rules only after everything was bought": (
        "unit/lessons/test_lessons_pipeline.py::test_pipeline_scheme_that_stays_wrong_buys_no_lesson",
        "unit/lessons/test_lessons_plan.py::test_plan_keeps_every_rule_for_any_number_of_lessons",
    ),
    "one step wrote a state that the next one did not take": (
        "acceptance/test_cli_lessons.py::test_lessons_makes_a_course_and_says_where_it_is",
    ),
    "old version deleted before the new one stood": (
        "contract/test_publisher_contract.py::test_publish_on_a_full_disk_leaves_the_old_version",
        "contract/test_publisher_contract.py::test_publish_keeps_the_version_before_and_no_older_one",
        "contract/test_publisher_contract.py::test_publish_never_shows_a_mixture",
    ),
    "work skipped by its number although its inputs had changed": (
        "unit/engine/test_engine_values.py::test_changed_input_voids_what_was_made_from_it_and_nothing_else",
        "unit/engine/test_engine_values.py::test_changed_input_that_nothing_finished_was_made_from_voids_nothing",
        "unit/engine/test_engine_runs.py::test_raised_step_version_is_refused_and_names_it",
    ),
    "four readers of four formats": (
        "unit/records/test_records_codec.py::test_line_gives_back_its_fact_and_envelope",
        "unit/store/test_store_files.py::test_original_document_becomes_a_journal_when_it_is_opened",
    ),
    "id taken out of printed text by a pattern": (
        "unit/lessons/test_lessons_pipeline.py::test_pipeline_leaves_the_outputs_of_its_steps",
        "unit/lessons/test_lessons_catalogue.py::test_fault_names_file_line_and_key",
    ),
    "one subject under two names": (
        "unit/lessons/test_lessons_names.py::test_subject_application_and_applications_of_mathematics_are_one",
    ),
    "two starts in one second became one run": (
        "acceptance/test_many_starts.py::test_five_forced_starts_at_once_are_five_runs",
        "acceptance/test_many_starts.py::test_two_courses_started_at_once_do_not_meet",
        "contract/test_store_contract.py::test_run_is_named_by_its_start_and_collisions_are_counted",
    ),
    "unknown key made a run unreadable": (
        "unit/records/test_records_documents.py::test_pipeline_state_gives_back_the_document_and_keys_it_does_not_know",
        "unit/records/test_records_codec.py::test_kinds_shapes_and_fields_of_later_versions_are_kept_or_left_out",
    ),
    "truncated checkpoint vanished from the list": (
        "acceptance/test_cli_list.py::test_list_shows_every_kind_of_run_newest_first",
        "unit/store/test_store_files.py::test_original_document_cut_at_every_byte_never_crashes",
        "unit/store/test_store_damage.py::test_head_cut_or_flipped_at_every_byte_shows_what_the_journal_says",
    ),
    "cleanup removed unfinished runs; its second limit did not work": (
        "contract/test_store_upkeep_contract.py::test_unfinished_owned_and_newest_completed_runs_stay",
        "contract/test_store_upkeep_contract.py::test_runs_beyond_the_newest_so_many_go",
        "contract/test_store_upkeep_contract.py::test_dry_run_of_a_cleanup_only_says",
    ),
    "unknown run, status or alias: exit code 0": (
        "acceptance/test_cli_status.py::test_unknown_runs_exit_with_three",
        "acceptance/test_cli_list.py::test_list_unknown_values_are_errors",
        "acceptance/test_cli_list.py::test_list_filters",
    ),
    "critic paid for what code could have seen": (
        "unit/lessons/test_lessons_author.py::test_lesson_with_a_fault_goes_back_to_its_author_and_never_to_the_critic",
        "unit/lessons/test_lessons_author.py::test_lesson_with_a_wrong_answer_key_never_reaches_the_critic",
    ),
    "invalid lesson stored with a warning": (
        "unit/lessons/test_lessons_author.py::test_lesson_is_rejected_after_three_revisions_and_says_why",
        "unit/lessons/test_lessons_pipeline.py::test_pipeline_skip_failed_publishes_without_that_lesson_and_marks_it",
    ),
    "missing parts filled in with nothing; references to nothing": (
        "unit/lessons/test_lessons_shape.py::test_shape_fault_names_its_place",
        "unit/lessons/test_lessons_plan.py::test_outline_refs_outside_the_catalogue_are_refused",
    ),
    "rate limit ended a run of hours": (
        "unit/engine/test_engine_calls.py::test_rate_limits_are_waited_out_and_every_try_is_recorded",
        "unit/engine/test_engine_calls.py::test_a_wait_beyond_patience_pauses_resumably",
    ),
    "formulas destroyed by patterns": (
        "unit/publish/test_publish_mathml.py::test_parse_sets_the_parts_of_school_mathematics",
        "unit/publish/test_publish_parts.py::test_mathematics_that_cannot_be_set_is_shown_as_typed",
    ),
    "number of items taken from elsewhere than the plan": (
        "unit/lessons/test_lessons_pipeline.py::test_pipeline_leaves_the_outputs_of_its_steps",
        "unit/lessons/test_lessons_plan.py::test_outline_with_a_gap_or_a_wrong_number_is_refused",
    ),
    "any of several versions used": (
        "unit/engine/test_engine_values.py::test_load_gives_the_artifact_of_the_newest_completed_visit",
        "contract/test_publisher_contract.py::test_publish_of_the_version_before_switches_back",
    ),
    "skipped steps without a record": (
        "unit/records/test_records_documents.py::test_head_of_a_completed_run_has_no_next_step_and_shows_what_was_skipped",
        "unit/records/test_records_documents.py::test_snapshot_stands_behind_the_documents_last_step",
    ),
}

#: What users reported of products like this one, and what the provider's own tools hide.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "cache writes charged twice": ("unit/cost/test_cost_usage.py::test_kinds_are_disjoint_and_count_once",),
    "breakdown added to its total": ("unit/cost/test_cost_usage.py::test_kinds_are_disjoint_and_count_once",),
    "usage of a stream added up": (
        "unit/llm/test_llm_replies.py::test_reply_holds_text_stop_reason_model_and_request_id",
    ),
    "unknown model for nothing, so no budget fires": (
        "unit/cost/test_cost_prices.py::test_what_has_no_price_is_unpriced_with_the_reason_and_never_zero",
        "unit/engine/test_engine_budget.py::test_model_without_a_price_is_refused_under_a_ceiling_before_any_step",
        "unit/engine/test_engine_budget.py::test_one_request_to_a_model_without_a_price_is_not_sent_under_a_ceiling",
        "acceptance/test_cli_limits.py::test_spend_without_a_price_is_said_to_have_none",
    ),
    "batch discount not on cached tokens": (
        "unit/cost/test_cost_prices.py::test_batch_halves_every_token_kind_but_no_search_and_says_the_full_price",
    ),
    "tokens summed before they are priced": (
        "unit/cost/test_cost_prices.py::test_long_prompt_makes_every_token_dearer_and_cached_tokens_count_to_its_length",
    ),
    "attempts that failed validation not counted": (
        "unit/cost/test_cost_ledger.py::test_every_try_is_a_row_that_says_whether_it_was_used_and_why_not",
        "unit/llm/test_llm_replies.py::test_truncations_refusals_and_invalid_answers_are_replies_with_what_they_cost",
    ),
    "broken stream forgotten although billed": (
        "unit/llm/test_llm_replies.py::test_stream_that_breaks_off_is_a_failure_that_keeps_what_came",
        "unit/cost/test_cost_prices.py::test_broken_off_try_costs_what_was_seen_up_to_its_worst_case",
        "unit/llm/test_llm_bill.py::test_bill_lies_between_both_ends_of_the_ledger_under_faults",
    ),
    "two layers of retries": (
        "unit/llm/test_llm_replies.py::test_one_call_is_one_request_whatever_happens",
        "unit/engine/test_engine_calls.py::test_all_workers_wait_for_what_one_was_told",
        "unit/engine/test_engine_calls.py::test_errors_count_towards_the_limit_of_tries_over_all_resumes",
    ),
    "interrupted run pays again for what it had": (
        "acceptance/test_kills.py::test_killed_courses_publish_the_same_bytes_and_pay_nothing_twice",
        "acceptance/test_death_at_every_write.py::test_death_at_any_call_of_the_disk_costs_only_what_was_in_flight",
        "acceptance/test_refusing_disk.py::test_writes_refused_for_good_keep_every_reply_in_the_emergency_file",
    ),
    "billing error does not stop the others": (
        "unit/engine/test_engine_calls.py::test_trouble_of_the_account_stops_the_run_at_once_and_the_next_resume_goes_on",
        "unit/llm/test_llm_faults.py::test_every_error_says_what_it_means_and_whether_it_was_billed",
    ),
    "interrupt during a resume loses progress": (
        "unit/engine/test_engine_laws.py::test_run_killed_twice_and_resumed_equals_the_undisturbed_one",
        "acceptance/test_signals.py::test_second_signal_leaves_at_once_with_a_journal_to_go_on_from",
    ),
    "longer values replaced by placeholders on resume": (
        "unit/engine/test_engine_values.py::test_values_of_any_length_are_whole_after_a_resume",
        "unit/engine/test_engine_runs.py::test_large_values_live_in_blobs_and_come_back",
    ),
    "running again repeats what had succeeded": (
        "unit/engine/test_engine_runs.py::test_resume_after_failure_repeats_only_what_failed",
        "unit/engine/test_engine_laws.py::test_run_with_failing_steps_killed_and_resumed_makes_what_an_undisturbed_one_makes",
    ),
    "rate limit retried once, then the item dropped; every worker storms on": (
        "unit/engine/test_engine_calls.py::test_wait_after_a_rate_limit_is_everybodys_and_any_other_is_the_calls_own",
        "unit/llm/test_llm_faults.py::test_wait_is_read_in_every_form_and_bounded",
    ),
    "a long wait that cannot be interrupted": (
        "unit/engine/test_engine_calls.py::test_interrupt_ends_a_long_wait",
        "unit/engine/test_engine_calls.py::test_a_wait_beyond_patience_pauses_resumably",
    ),
    "cut-off answer called invalid and asked again under the same cap": (
        "unit/engine/test_engine_calls.py::test_truncation_is_asked_once_more_with_a_higher_cap",
        "unit/engine/test_engine_calls.py::test_truncated_twice_fails_naming_max_tokens",
    ),
    "refusal and cut hidden behind a validation error": (
        "unit/llm/test_llm_replies.py::test_truncations_refusals_and_invalid_answers_are_replies_with_what_they_cost",
        "unit/engine/test_engine_calls.py::test_refusal_is_returned_and_not_asked_again",
    ),
    "stream without an end taken as complete": (
        "unit/llm/test_llm_replies.py::test_stream_that_breaks_off_is_a_failure_that_keeps_what_came",
    ),
    "Ctrl-C reports success, or hangs": (
        "acceptance/test_signals.py::test_first_signal_starts_nothing_more_and_records_what_is_in_flight",
        "acceptance/test_signals.py::test_second_signal_is_obeyed_although_the_first_is_still_being_told",
    ),
    "display starts at nothing after a resume": (
        "unit/cli/test_cli_progress.py::test_progress_tally_tells_restored_from_new_and_before_from_since",
    ),
    "finished part of an expired batch thrown away": (
        "unit/engine/test_engine_batches.py::test_what_errored_or_expired_goes_again_alone_and_what_is_wrong_fails_its_item",
    ),
    "batch in flight lost or sent again after a stop": (
        "acceptance/test_kills_in_batches.py::test_killed_batches_are_found_again_and_paid_once",
        "acceptance/test_kills_in_batches.py::test_kill_while_the_provider_creates_a_batch_pays_it_once",
        "unit/engine/test_engine_batches.py::test_another_key_is_no_proof_and_the_right_one_goes_on",
    ),
    "identifier in a batch too long": (
        "unit/engine/test_engine_batches.py::test_a_batch_is_in_the_journal_before_it_is_created_with_all_its_calls",
    ),
    "batch not found for a moment taken for lost": (
        "unit/engine/test_engine_batches.py::test_young_batch_s_404_is_an_outage",
    ),
    "wrong token limit told only when the batch has ended": (
        "unit/engine/test_engine_batches.py"
        "::test_a_token_limit_that_the_model_does_not_take_is_refused_before_anything_is_sent",
    ),
    "missing credential found at the first call": (
        "acceptance/test_cli_lessons.py::test_lessons_for_claude_without_a_credential_stops_before_any_step",
    ),
    "retired model found at the first call": (
        "unit/llm/test_llm_check.py::test_unknown_and_retired_models_are_refused_naming_the_nearest_known_one",
    ),
    "a second's wait for a library that is not used": (
        "acceptance/test_start_imports.py::test_command_loads_nothing_heavy",
    ),
}


@cache
def _functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("fault", [*BEFORE, *ELSEWHERE])
def test_each_known_fault_has_tests_that_exist(fault: str) -> None:
    named = {**BEFORE, **ELSEWHERE}[fault]
    assert named
    for test in named:
        file, _, function = test.partition("::")
        assert function.startswith("test_")
        assert (TESTS / file).is_file(), f"{fault}: no file {file}"
        assert function in _functions(file), f"{fault}: no test {function} in {file}"


def test_no_fault_stands_in_two_tables() -> None:
    assert len({*BEFORE, *ELSEWHERE}) == len(BEFORE) + len(ELSEWHERE)
