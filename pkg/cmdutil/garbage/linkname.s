// The compiler accepts functions without a body if a package has a file of the assembler.
