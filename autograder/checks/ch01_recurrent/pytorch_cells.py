"""Functions and classes of PyTorch that would do an exercise about recurrent networks by themselves."""

RECURRENT_LAYERS = (
    *("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"),
    *("rnn_tanh", "rnn_relu", "lstm", "gru", "rnn_tanh_cell", "rnn_relu_cell", "lstm_cell", "gru_cell"),
    *("_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "quantized_lstm_cell", "quantized_gru_cell"),
    # PyTorch's own decompositions, in Python.
    *("_rnn_helper", "rnn_cell", "rnn_cell_data", "gru_cell_data", "mkldnn_one_layer_lstm"),
    "mkldnn_rnn_layer",
    # What records a layer as the plain operations that it consists of.
    *("trace", "trace_module", "symbolic_trace", "make_fx", "export"),
    *("one_layer_rnn", "one_layer_rnn_data", "one_layer_lstm", "one_layer_lstm_data"),
)
