package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheIdentityIsWhereTheAPIIs(t *testing.T) {
	t.Setenv("POD_IP", "10.1.2.3")
	o, err := parse([]string{"--listen=:9999"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "10.1.2.3:9999", o.identity)
	t.Setenv("POD_IP", "fd00::1")
	o, err = parse(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "[fd00::1]:9097", o.identity)
	assert.Equal(t, 24*time.Hour, o.ttl)
	o, err = parse([]string{"--identity=a", "--log-bytes=0"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "a", o.identity)
	assert.Equal(t, -1, o.logBytes, "0 means none, not the default")
}

func TestArgumentsThatMeanNothingAreRefused(t *testing.T) {
	for argument, want := range map[string]string{
		"--listen=9097": "HOST:PORT", "--ttl=-1h": "--ttl", "--keep=-1h": "--keep", "--keep-audit=-1h": "--keep-audit", "--audit-rows=-1": "--audit-rows", "--workers=0": "--workers", "--qps=0": "--qps", "--runtime-delivery=ftp": "init-container", "--qp=1": "-qp", "now": "now",
	} {
		_, err := parse([]string{argument}, io.Discard)
		require.ErrorContains(t, err, want)
	}
}

func TestADatabaseIsNamedInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dsn")
	place := func() (string, error) {
		o, err := parse([]string{"--dsn-file=" + file}, io.Discard)
		require.NoError(t, err)
		a, err := o.archive()
		return a.DSN, err
	}
	_, err := place()
	require.Error(t, err, "without the file, history would go to another place")
	require.NoError(t, os.WriteFile(file, []byte("\n"), 0o600))
	_, err = place()
	require.ErrorContains(t, err, "empty")
	require.NoError(t, os.WriteFile(file, []byte("postgres://db/pai\n"), 0o600))
	dsn, err := place()
	require.NoError(t, err)
	assert.Equal(t, "postgres://db/pai", dsn)
}
