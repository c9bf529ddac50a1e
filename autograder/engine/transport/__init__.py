"""Send messages between processes: framed sockets, and serialisation of plain data and tensors."""
