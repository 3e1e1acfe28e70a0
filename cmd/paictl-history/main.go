// Command paictl-history reads jobs from the database of a cluster of OpenPAI. "paictl migrate openpai --history-from" starts it.
package main

import (
	"os"

	"github.com/openpai/paictl/pkg/openpai/history/reader"
)

func main() { os.Exit(reader.Main(os.Args[1:])) }
