package ssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

func TestAConfigurationIsReadAsOpenSSHReadsIt(t *testing.T) {
	for name, c := range map[string]struct {
		config, included string
		port             string
		warned           string
	}{
		"a quoted host":                 {config: "Host \"10.0.0.1\"\n Port 1\n", port: "1"},
		"an equals sign":                {config: "Host = 10.0.0.1\nPort=\"1\"\n", port: "1"},
		"Match all":                     {config: "Match all\n Port 1\n", port: "1"},
		"another Match":                 {config: "Match user pai\n Port 1\nHost *\n Port 2\n", port: "2", warned: "DIR/config:1: paictl ignores this Match block"},
		"Match in an included file":     {config: "Include DIR/more\nPort 2\n", included: "Host x\n Port 3\nMatch host 10.0.0.1\n Port 1\n", port: "2", warned: "DIR/more:3: paictl ignores this Match block"},
		"Match all in an included file": {config: "Include DIR/mo*\nPort 2\n", included: "Match all\n Port 1\n", port: "1"},
		"Include for other hosts":       {config: "Host other\n Include DIR/more\nHost *\n Port 2\n", included: "Port 1\n", port: "2"},
		"Include of no file":            {config: "Include DIR/none\nPort 2\n", port: "2"},
		"an unknown keyword":            {config: "Prot 1\nServerAliveInterval 5\n", warned: "DIR/config:1: OpenSSH has no keyword prot"},
		"ProxyCommand":                  {config: "Host 10.*\n ProxyCommand nc %h %p\n", warned: "DIR/config:2: paictl runs no ProxyCommand"},
		"no ProxyCommand":               {config: "ProxyCommand none\n"},
		"ProxyCommand after ProxyJump":  {config: "Host 10.*\n ProxyJump x\n ProxyCommand nc\n"},
		"a byte order mark and CRLF":    {config: "\ufeffHost *\r\n Port 1\r\n", port: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := strings.NewReplacer("DIR", dir)
			file := filepath.Join(dir, "config")
			require.NoError(t, os.WriteFile(file, []byte(in.Replace(c.config)), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "more"), []byte(c.included), 0o600))
			var warned []string
			r, err := newResolver(Options{Home: dir, ConfigFile: file, Warn: func(text string) { warned = append(warned, text) }})
			require.NoError(t, err)
			for range 2 {
				_, err = r.target(Target{Address: "10.0.0.1", User: "pai"})
				require.NoError(t, err)
			}
			assert.Equal(t, c.port, r.get("10.0.0.1", "Port"))
			if c.warned == "" {
				assert.Empty(t, warned)
				return
			}
			require.Len(t, warned, 1)
			assert.Contains(t, warned[0], in.Replace(c.warned))
		})
	}
}

func TestAMistakeInAConfigurationNamesItsLine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	for text, want := range map[string]string{
		"Host a\n Port\n":           file + ":2: port has no value",
		"Include " + file + "\n":    "more than 16 levels of Include",
		"Include " + dir + "/fold*": "read OpenSSH's configuration: read " + dir + "/folder",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "folder"), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := newResolver(Options{Home: dir, ConfigFile: file})
		require.ErrorContains(t, err, want)
		assert.NotEmpty(t, hint.Of(err), text)
	}
}
