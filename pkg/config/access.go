package config

// ReadFiles returns the texts of the four files of a configuration folder by file name. It reads the files as Load does.
func ReadFiles(dir string) (map[string][]byte, error) { return readFiles(dir) }

// LooksSecret reports whether a value is treated as a secret because of the name of its key. It is used for keys whose meaning isn't known.
func LooksSecret(key string) bool { return looksSecret(key) }
