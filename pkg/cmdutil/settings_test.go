package cmdutil

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// settingsOf writes text into config.yaml in a new home folder, and returns the folder and its settings.
func settingsOf(t *testing.T, text string) (home string, s *Settings, err error) {
	t.Helper()
	home = t.TempDir()
	file := filepath.Join(home, ".config", "paictl", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	f := &Factory{Getenv: func(name string) string { return map[string]string{"HOME": home, "PAICTL_GROUP": "nlp"}[name] }}
	s, err = f.Settings()
	return home, s, err
}

func TestSettingsKeepTheirText(t *testing.T) {
	for text, want := range map[string]string{
		"user: 0123": "0123", "user: 1e3": "1e3", "user: 2024-01-01": "2024-01-01", "user: yes": "yes", "user: 'a b'": "a b",
		"": "", "# user: ann": "", "user:": "",
	} {
		_, s, err := settingsOf(t, text+"\n")
		require.NoError(t, err, text)
		assert.Equal(t, want, s.GetString("user"), text)
	}
	home, s, err := settingsOf(t, "config: ~/c\nbundle: ~\ngroup: vision\n")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(home, "c"), s.GetString("config"))
	assert.Empty(t, s.GetString("bundle"), "~ alone is YAML's null")
	assert.Equal(t, "nlp", s.GetString("group"), "the environment wins")
}

func TestAMistakeInTheSettingsIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"usr: ann":             `config.yaml:1:1: usr: there is no key "usr" here [yaml/unknown-key]` + "\n" + `  -> did you mean "user"?`,
		"user: [ann]":          "config.yaml:1:7: user: expected text, found a list [yaml/type]",
		"user: {a: b}":         "config.yaml:1:7: user: expected text, found a map [yaml/type]",
		"user: a\nuser: b":     "config.yaml:2:1: user: the key is already set on line 1 [yaml/duplicate-key]",
		"group: x\nuser: @ann": "config.yaml:2:",
		"- user":               "config.yaml:1:1: expected a map, found a list [yaml/type]",
	} {
		_, _, err := settingsOf(t, text+"\n")
		require.ErrorContains(t, err, want, text)
		assert.Contains(t, err.Error(), "-> ", text)
	}
}

func TestSettingsThatCannotBeReadAreAnError(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".config", "paictl", "config.yaml"), 0o700))
	_, err := (&Factory{Getenv: func(string) string { return home }}).Settings()
	require.NoError(t, err, "there is no file "+home+"/paictl")
	_, err = (&Factory{Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}).Settings()
	require.ErrorContains(t, err, "read paictl's settings: ")
	_, err = (&Factory{Getenv: func(name string) string { return map[string]string{"HOME": os.DevNull}[name] }}).Settings()
	require.NoError(t, err, "an account without a home has no settings")
}
