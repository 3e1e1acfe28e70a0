// Package cmdutil contains the code that all commands share: a factory that creates objects on first use, exit codes, error printing and output
// formats.
// In: streams and the environment. Out: the values in a command's options struct.
package cmdutil

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// Factory gives commands the objects that they need. Objects are created on first use, so that --help accesses neither the disk nor the network.
type Factory struct {
	IO      *iostreams.IOStreams
	Version string

	// Getenv reads an environment variable. Tests replace it.
	Getenv func(string) string
	// Log is the debug log. It is written to the file of --log-file; without this flag it is discarded.
	Log *slog.Logger

	settings *Settings
}

// New returns the factory of the program. Its version is the given one.
func New(version string) *Factory {
	return &Factory{
		IO:      iostreams.System(os.Getenv),
		Version: version,
		Getenv:  getenv,
		Log:     slog.New(slog.DiscardHandler),
	}
}

// getenv reads an environment variable. It trims white space from paictl's own variables: scripts that were written on Windows leave a carriage
// return at the end of a value, which no message would show.
func getenv(name string) string {
	if strings.HasPrefix(name, "PAICTL_") {
		return strings.TrimSpace(os.Getenv(name))
	}
	return os.Getenv(name)
}

// ConfigHome returns the folder where all programs keep their settings, usually ~/.config.
func (f *Factory) ConfigHome() string {
	if d := f.Getenv("XDG_CONFIG_HOME"); d != "" {
		return d
	}
	return filepath.Join(f.Getenv("HOME"), ".config")
}
