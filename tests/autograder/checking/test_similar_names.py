"""Names that were meant as others."""

import pytest

from autograder.checking.similar_names import explain_no_exercise, find_nearest_name, is_similar_name

SAMPLERS = ("top_k", "top_p", "top_n_sigma", "beam_search", "mirostat", "repetition_penalty", "temperature")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("topk_filter", "top_k"),
        ("TopK", "top_k"),
        ("topp", "top_p"),
        ("beamsearch", "beam_search"),
        ("int", ""),
        ("softmax", ""),
        ("f", ""),
        ("<lambda>", ""),
    ],
)
def test_the_nearest_name_is_found(written, meant):
    assert find_nearest_name(written, SAMPLERS) == meant


def test_names_of_the_chapter_come_first():
    def top_kk():
        pass

    assert explain_no_exercise(top_kk, SAMPLERS, ["top_kkk"]) == (
        f"there is no exercise named 'top_kk'; did you mean top_k? This chapter's exercises: {', '.join(SAMPLERS)}"
    )
    assert (
        explain_no_exercise("top_k", SAMPLERS) == "check takes the function or class itself, not its name: check(top_k)"
    )


def test_a_name_with_a_leading_underscore_is_a_helper():
    assert not is_similar_name("_Gpt_cached_attention", "cached_attention")
    assert not is_similar_name("_causal_mask", "causal_mask")
    assert is_similar_name("causal_maks", "causal_mask")
