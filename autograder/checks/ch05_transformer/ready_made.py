"""Functions of PyTorch that would do an exercise of chapter 05 by themselves."""

NORMS = (
    *("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm", "group_norm", "native_group_norm"),
    *("instance_norm", "batch_norm", "native_batch_norm", "cudnn_batch_norm", "_batch_norm_impl_index"),
    *("_batch_norm_no_update", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"),
    *("_native_batch_norm_legit_functional", "_batch_norm_with_update", "_batch_norm_with_update_functional"),
    *("native_batch_norm_helper", "_normalize", "local_response_norm"),
)

# Whatever computes attention in one call, under all the names that PyTorch has for it.
ATTENTION = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
    "_flash_attention_forward",
    "_efficient_attention_forward",
    "flex_attention",
    "math_attention",
    "_math_attention_inner",
    "sdpa_dense",
    "sdpa_dense_backward",
    "multi_head_attention_forward",
    "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd",
    "MultiheadAttention",
    # These record a ready-made layer as the plain operations that it consists of: nothing else is seen of it afterwards.
    "trace",
    "trace_module",
    "symbolic_trace",
    "make_fx",
    "export",
)
