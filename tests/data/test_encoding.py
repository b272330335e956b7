"""Does every token know its word, whatever the tokenizer?"""

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertTokenizerFast, PreTrainedTokenizerFast

from erlib.data import batch_indices, collate, encode, truncated_share
from erlib.data.schema import to_dataset


def wordpiece():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "##ed", "the", "cat", "!", "good"]
    vocab = {word: i for i, word in enumerate(words)}
    inner = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return BertTokenizerFast(tokenizer_object=inner)


def byte_bpe(*, prefix=False, trim=True, roberta=False):
    """GPT-2 style; with `roberta`, <s> A </s></s> B </s> around it."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(["<s>", "</s>", *letters])}
    merges = [("c", "a"), ("ca", "t"), ("Ġ", "cat"), ("Ġ", "p")]
    for left, right in merges:
        vocab[left + right] = len(vocab)
    inner = Tokenizer(models.BPE(vocab, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    inner.decoder = decoders.ByteLevel()
    if roberta:
        inner.post_processor = processors.RobertaProcessing(
            ("</s>", 1), ("<s>", 0), trim_offsets=trim, add_prefix_space=prefix
        )
    else:
        inner.post_processor = processors.ByteLevel(trim_offsets=trim)
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def llama():
    """SentencePiece BPE as Llama ships it: no pre-tokenizer, bytes for unknown characters."""
    pieces = ["<unk>", "<s>", "▁", "c", "a", "t", "s", "▁cat", "at", "▁c", "ca", "cat"]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    vocab |= {f"<0x{i:02X}>": len(vocab) + i for i in range(256)}
    merges = [("c", "a"), ("ca", "t"), ("▁", "cat")]
    inner = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True))
    inner.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def unigram():
    pieces = [("<unk>", 0.0), ("▁the", -1.0), ("▁cat", -1.0), ("s", -2.0), ("▁", -3.0)]
    inner = Tokenizer(models.Unigram(pieces, unk_id=0))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")


def word_level():
    inner = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "cat": 2}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")


def test_wordpieces_of_a_word_share_it_and_specials_have_none():
    [e] = encode(["The playing cat!"], wordpiece(), max_length=16)
    assert e.tokens == ["[CLS]", "the", "play", "##ing", "cat", "!", "[SEP]"]
    assert e.word_ids == [-1, 0, 1, 1, 2, 2, -1]
    assert e.segment == [-1, 0, 0, 0, 0, 0, -1]
    assert e.special == [True, *[False] * 5, True]
    assert e.token_type_ids == [0] * 7


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("trim", [False, True])
def test_byte_level_words_align_with_and_without_prefix_space(prefix, trim):
    tokenizer = byte_bpe(prefix=prefix, trim=trim)
    [e] = encode([["cat", "cats", "é"]], tokenizer, max_length=32)
    assert e.tokens == [
        "Ġcat",
        "Ġcat",
        "s",
        "Ġ",
        "Ã",
        "©",
    ]  # the first word is spelt like the second
    assert e.word_ids == [0, 1, 1, 2, 2, 2]
    assert not any(e.special)


def test_a_roberta_pair_has_two_specials_in_the_middle():
    [e] = encode([("cat", "cat p")], byte_bpe(roberta=True), max_length=32)
    assert e.tokens == ["<s>", "Ġcat", "</s>", "</s>", "Ġcat", "Ġp", "</s>"]
    assert e.segment == [-1, 0, -1, -1, 1, 1, -1]
    assert e.word_ids == [-1, 0, -1, -1, 0, 1, -1]


def test_llama_gives_a_lone_blank_and_byte_fallbacks_to_the_word_that_follows():
    [e] = encode([["cat", "日", "cats"]], llama(), max_length=32)
    assert e.tokens == ["<s>", "▁cat", "▁", "<0xE6>", "<0x97>", "<0xA5>", "▁cat", "s"]
    assert e.word_ids == [-1, 0, 1, 1, 1, 1, 2, 2]


def test_unigram_pieces_align():
    [e] = encode([["the", "cats", "x"]], unigram(), max_length=32)
    assert e.tokens == ["▁the", "▁cat", "s", "▁", "x"]
    assert e.word_ids == [0, 1, 1, 2, 2]


def test_word_level_is_one_token_per_word_and_unknown_words_keep_their_place():
    [e] = encode([["the", "dog", "cat"]], word_level(), max_length=8)
    assert (e.input_ids, e.word_ids) == ([1, 0, 2], [0, 1, 2])


def test_a_word_may_contain_a_blank_and_a_word_the_tokenizer_deletes_leaves_a_gap():
    [e] = encode([["the cat", "\u200b", "good"]], wordpiece(), max_length=16)
    assert e.tokens[1:-1] == ["the", "cat", "good"]
    assert e.word_ids[1:-1] == [0, 0, 2]


def test_pairs_of_bert_have_token_types_and_segments():
    [e] = encode([("the cat", ["good", "playing"])], wordpiece(), max_length=16)
    assert e.segment == [-1, 0, 0, -1, 1, 1, 1, -1]
    assert e.word_ids == [-1, 0, 1, -1, 0, 1, 1, -1]
    assert e.token_type_ids == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("make", [wordpiece, llama, lambda: byte_bpe(roberta=True)])
def test_without_specials_only_the_words_are_left(make):
    with_specials = encode([("cat", "cat cat")], make(), max_length=16)[0]
    without = encode([("cat", "cat cat")], make(), max_length=16, specials=False)[0]
    kept = [t for t, s in zip(with_specials.tokens, with_specials.special, strict=True) if not s]
    assert without.tokens == kept
    assert without.segment == [0, 1, 1]
    assert not any(without.special)


def test_truncation_keeps_the_last_special_and_is_counted():
    encoded = encode(["the cat the cat the cat", "the cat"], wordpiece(), max_length=5)
    assert encoded[0].tokens == ["[CLS]", "the", "cat", "the", "[SEP]"]
    assert [e.truncated for e in encoded] == [True, False]
    assert truncated_share(encoded) == 0.5


def test_every_piece_of_a_rationale_word_is_marked_and_specials_are_not():
    row = {"id": "a", "words": ["the", "playing", "cat"], "rationale": [0, 1, 0], "label": 1}
    data = to_dataset([row], "classify", ["no", "yes"])
    [e] = encode(data, wordpiece(), max_length=16)
    assert e.rationale == [0, 0, 1, 1, 0, 0]
    assert (e.id, e.label) == ("a", 1)


def test_a_pair_may_have_a_rationale_on_one_side_only():
    rows = [
        {"id": "a", "words_a": ["cat"], "words_b": ["good"], "label": 0, "rationale_b": [1]},
        {"id": "b", "words_a": ["cat"], "words_b": ["good"], "label": 1},
    ]
    data = to_dataset(rows, "pair", ["x", "y"])
    first, second = encode(data, wordpiece(), max_length=16)
    assert first.rationale == [0, 0, 0, 1, 0]
    assert second.rationale is None


QUESTION = {
    "question": "good cat",
    "context": "the  cat\n playing the good-cat!",
    "answers": [{"text": "good-cat", "answer_start": 22}],
}


BYTES = ["<0x67>", "<0x6F>", "<0x6F>", "<0x64>", "<0x2D>"]


@pytest.mark.parametrize(
    ("tokenizer", "tokens"),
    [
        (wordpiece(), ["good", "[UNK]", "cat"]),
        (llama(), [*BYTES, "cat"]),
        (byte_bpe(), [*"good-", "cat"]),
        (byte_bpe(trim=False), [*"good-", "cat"]),
        (byte_bpe(roberta=True), [*"good-", "cat"]),
    ],
)
def test_the_answers_tokens_spell_the_answer(tokenizer, tokens):
    [e] = encode([QUESTION], tokenizer, max_length=200)
    start, end = e.answer
    assert e.tokens[start : end + 1] == tokens
    assert set(e.word_ids[start : end + 1]) == {4}
    assert set(e.segment[start : end + 1]) == {1}


def test_an_answer_inside_a_word_excludes_the_rest_of_it():
    [e] = encode([QUESTION], wordpiece(), max_length=200)
    _, end = e.answer
    assert e.tokens[end : end + 2] == ["cat", "!"]
    assert e.word_ids[end : end + 2] == [4, 4]


def test_only_the_context_is_cut_and_a_cut_answer_is_none():
    [e] = encode([QUESTION], wordpiece(), max_length=9)
    assert e.tokens == ["[CLS]", "good", "cat", "[SEP]", "the", "cat", "play", "##ing", "[SEP]"]
    assert (e.answer, e.truncated) == ((-100, -100), True)


def test_a_question_that_leaves_no_room_is_refused():
    with pytest.raises(ValueError, match="leaves no room.*raise max_length"):
        encode([QUESTION], wordpiece(), max_length=5)


def test_an_answer_that_is_not_in_the_context_is_refused():
    wrong = {**QUESTION, "answers": [{"text": "dog", "answer_start": 5}]}
    with pytest.raises(ValueError, match="not the answer 'dog'"):
        encode([wrong], wordpiece(), max_length=50)


@pytest.mark.parametrize("empty", ["", "   ", [], ["the", ""]])
def test_an_empty_text_is_refused(empty):
    with pytest.raises(ValueError, match="no words, or an empty one"):
        encode([empty], wordpiece(), max_length=8)


def test_a_text_of_which_nothing_is_left_is_refused():
    with pytest.raises(ValueError, match="has no token left"):
        encode([["\u200b"]], wordpiece(), max_length=8)


def test_one_bare_string_is_not_taken_for_a_list_of_letters():
    with pytest.raises(ValueError, match="put a single text in a list"):
        encode("the cat", wordpiece(), max_length=8)


def test_inputs_of_different_kinds_come_back_in_order():
    inputs = ["the cat", ("cat", "good"), ["good", "cat"], QUESTION]
    encoded = encode(inputs, wordpiece(), max_length=64)
    assert [e.id for e in encoded] == ["0", "1", "2", "3"]
    assert [max(e.segment) for e in encoded] == [0, 1, 0, 1]


def test_labels_may_be_given_and_must_be_as_many_as_the_inputs():
    encoded = encode(["cat", "good"], wordpiece(), max_length=8, labels=[1, 0])
    assert [e.label for e in encoded] == [1, 0]
    with pytest.raises(ValueError, match="1 labels for 2 inputs"):
        encode(["cat", "good"], wordpiece(), max_length=8, labels=[1])


def test_a_batch_is_padded_on_the_right_and_says_what_is_padding():
    rows = [
        {"id": "long", "words": ["the", "playing", "cat"], "label": 1, "rationale": [0, 1, 0]},
        {"id": "short", "words": ["cat"], "label": 0, "rationale": [0]},
    ]
    encoded = encode(to_dataset(rows, "classify", ["n", "y"]), wordpiece(), max_length=16)
    batch = collate(encoded, pad_id=0)
    assert batch.inputs["input_ids"].tolist() == [[2, 7, 4, 5, 8, 3], [2, 8, 3, 0, 0, 0]]
    assert batch.inputs["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]
    assert batch.inputs["token_type_ids"].tolist() == [[0] * 6] * 2
    assert batch.special[1].tolist() == [True, False, True, False, False, False]
    assert batch.segment[1].tolist() == batch.word_ids[1].tolist() == [-1, 0, -1, -1, -1, -1]
    assert batch.labels.tolist() == [1, 0]
    assert batch.rationale.tolist() == [[0, 0, 1, 1, 0, 0], [0] * 6]
    assert batch.rationale.dtype == torch.float
    assert batch.has_rationale.tolist() == [True, False]
    assert batch.ids == ["long", "short"]
    assert batch.to("cpu").inputs.keys() == batch.inputs.keys()


def test_span_labels_are_two_and_a_cut_answer_is_ignored_by_the_loss():
    whole = encode([QUESTION], wordpiece(), max_length=64)
    cut = encode([QUESTION], wordpiece(), max_length=9)
    batch = collate(whole + cut, pad_id=0)
    assert batch.labels.tolist() == [list(whole[0].answer), [-100, -100]]
    logits = torch.zeros(2, batch.inputs["input_ids"].shape[1])
    assert torch.isfinite(torch.nn.functional.cross_entropy(logits, batch.labels[:, 0]))


def test_a_batch_with_a_missing_label_is_refused():
    encoded = encode(["cat", "good"], wordpiece(), max_length=8, labels=[1, 0])
    encoded += encode(["cat"], wordpiece(), max_length=8)
    with pytest.raises(ValueError, match="without label"):
        collate(encoded, pad_id=0)


LENGTHS = [(7 * i) % 31 + 1 for i in range(203)]


def test_evaluation_batches_are_sorted_by_length():
    batches = batch_indices(LENGTHS, 8)
    assert [LENGTHS[i] for batch in batches for i in batch] == sorted(LENGTHS)


def test_training_batches_hold_every_index_once_and_follow_the_seed():
    first, again = batch_indices(LENGTHS, 8, seed=1), batch_indices(LENGTHS, 8, seed=1)
    assert sorted(i for batch in first for i in batch) == list(range(203))
    assert first == again != batch_indices(LENGTHS, 8, seed=2)
    assert sorted(map(len, first)) == [3, *[8] * 25]


def test_mixed_batches_are_cut_from_the_order_whatever_the_lengths():
    assert batch_indices(LENGTHS, 8, mixed=True)[0] == list(range(8))
    first = batch_indices(LENGTHS, 8, seed=1, mixed=True)
    assert sorted(i for batch in first for i in batch) == list(range(203))
    assert first == batch_indices([1] * 203, 8, seed=1, mixed=True)  # lengths have no part in it
    assert first != batch_indices(LENGTHS, 8, seed=2, mixed=True)


def test_training_batches_waste_little_padding():
    def padded(batches):
        return sum(max(LENGTHS[i] for i in b) * len(b) for b in batches)

    shuffled = [list(range(203))[i : i + 8] for i in range(0, 203, 8)]
    assert padded(batch_indices(LENGTHS, 8, seed=0)) < 0.75 * padded(shuffled)


def test_a_dataset_selection_is_encoded_in_its_own_order():
    data = Dataset.from_dict({"id": ["a", "b"], "words": [["cat"], ["good"]]}).select([1, 0])
    assert [e.id for e in encode(data, wordpiece(), max_length=8)] == ["b", "a"]
