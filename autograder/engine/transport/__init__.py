"""Messages between processes: framed sockets, and the serialization of plain data and tensors."""
