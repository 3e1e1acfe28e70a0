package ssh_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

func TestNoSecretReachesLogsErrorsOrCommandLines(t *testing.T) {
	const login, sudo, body = "l0gin-Pass", "sud0-Pass", "b0dy-Secret"
	c := shell(t)
	c.User, c.Password, c.Sudo = "pai", login, &sshtest.Sudo{Password: sudo}
	s := sshtest.NewServer(t, c)
	o := sshtest.Options(t, s)
	var log bytes.Buffer
	o.Tracer = ssh.SlogTracer{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	client := sshtest.NewClient(t, o)
	seen := func(err error) {
		if err != nil {
			log.WriteString(err.Error())
		}
	}
	h, err := client.Dial(t.Context(), s.Target())
	require.NoError(t, err)
	for _, text := range []string{"cat >/dev/null; : " + body, "if " + body, "exit 3 # " + body} {
		_, err = h.Run(t.Context(), ssh.Script{Name: "apply", Body: text})
		seen(err)
		_, err = h.Hold(t.Context(), ssh.Script{Name: "hold", Body: "echo ok; cat >/dev/null; : " + body})
		seen(err)
	}
	_, err = h.Upload(t.Context(), []ssh.File{file("/etc/x", body, 0o600)}, nil)
	seen(err)
	wrong := s.Target()
	wrong.SudoPassword = "Wr0ng-" + sudo
	h, err = client.Dial(t.Context(), wrong)
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "apply", Body: "true"})
	require.ErrorIs(t, err, ssh.ErrSudo)
	seen(err)
	wrong.Password = "Wr0ng-" + login
	_, err = client.Dial(t.Context(), wrong)
	require.ErrorIs(t, err, ssh.ErrAuth)
	seen(err)
	for _, e := range s.Execs() {
		log.WriteString(e.Line)
	}
	for _, secret := range []string{login, sudo, body} {
		assert.NotContains(t, log.String(), secret)
	}
	for _, op := range []ssh.Op{ssh.OpDial, ssh.OpRun, ssh.OpHold, ssh.OpUpload} {
		assert.Contains(t, log.String(), "op="+string(op))
	}
	assert.GreaterOrEqual(t, strings.Count(log.String(), "sudo -k -S"), 8)
}
