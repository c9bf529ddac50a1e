"""Send messages between processes: framed sockets, and serialization of plain data and tensors."""
