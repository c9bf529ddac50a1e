"""Functions of PyTorch that would do an exercise of chapter 05 by themselves."""

NORMS = (
    *("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm", "group_norm", "native_group_norm"),
    *("instance_norm", "batch_norm", "native_batch_norm", "cudnn_batch_norm", "_batch_norm_impl_index"),
    *("_batch_norm_no_update", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"),
    "_native_batch_norm_legit_functional",
)
