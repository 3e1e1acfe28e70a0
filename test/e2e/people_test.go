package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shareIt lets two people without a kubeconfig sign in at the cluster's server over TLS. They run jobs that the other person doesn't see.
func (j *jobs) shareIt(t *testing.T) {
	started := ok(t, j.args("service", "start", "-n", "rest-server")...)
	defer j.run(0, "stop", "-n", "rest-server")
	text := started.stdout + started.stderr
	server := regexp.MustCompile(`paictl login (https://\S+)`).FindStringSubmatch(text)
	require.NotNil(t, server, text)
	fingerprint := regexp.MustCompile(`[0-9A-F]{2}(:[0-9A-F]{2}){31}`).FindString(text)
	require.NotEmpty(t, fingerprint, text)
	assert.Contains(t, text, "There is no administrator yet")

	const password = "correct horse battery\n"
	asOperator := func(args ...string) string {
		t.Helper()
		cmd, out, said := command(t.Context(), t, j.args(args...)...)
		cmd.Stdin = strings.NewReader(password)
		require.NoError(t, cmd.Run(), "%s", said)
		return out.String()
	}
	asOperator("user", "add", "ada", "--password-stdin")
	asOperator("user", "add", "ben", "--password-stdin")
	homes := map[string]string{"ada": t.TempDir(), "ben": t.TempDir()}
	as := func(who string, args ...string) result {
		t.Helper()
		cmd, out, said := command(t.Context(), t, args...)
		cmd.Env = append(cmd.Env, "HOME="+homes[who], "XDG_CONFIG_HOME="+homes[who], "KUBECONFIG="+homes[who]+"/none")
		cmd.Stdin = strings.NewReader(password)
		_ = cmd.Run() // the code says it
		return result{stdout: out.String(), stderr: said.String(), code: cmd.ProcessState.ExitCode()}
	}
	may := func(who string, args ...string) string {
		t.Helper()
		r := as(who, args...)
		require.Equal(t, 0, r.code, "%s: paictl %s: %s", who, strings.Join(args, " "), r)
		return r.stdout
	}
	for _, who := range []string{"ada", "ben"} {
		r := as(who, "login", server[1], "--name", "lab", "--user", who)
		assert.NotZero(t, r.code, "the authority isn't trusted yet")
		assert.Contains(t, r.stderr, fingerprint)
		may(who, "login", server[1], "--name", "lab", "--user", who, "--fingerprint", fingerprint)
		assert.Contains(t, may(who, "whoami"), who)
	}

	may("ada", "job", "submit", example(t, "hello"), "--watch", "--timeout", "3m")
	assert.Contains(t, may("ada", "job", "logs", "hello"), "Hello ada, this is main-0 of ada~hello")
	assert.Contains(t, may("ada", "job", "list", "-A"), "hello")
	assert.NotContains(t, may("ben", "job", "list", "-A"), "hello")
	for _, args := range [][]string{{"get", "hello"}, {"logs", "hello"}, {"stop", "hello"}, {"delete", "hello", "--yes"}, {"why", "hello"}} {
		r := as("ben", append([]string{"job", args[0], "--user", "ada"}, args[1:]...)...)
		assert.NotZero(t, r.code, args)
		assert.Contains(t, r.stderr, `user ada has no job "hello"`, args)
	}
	ok(t, j.args("job", "get", "hello", "--user", "ada")...) // as the operator

	t.Run("attacks", (&siege{server[1], homes, as, asOperator}).getsNothing)

	asOperator("user", "disable", "ada")
	eventually(t, 30*time.Second, "ada's session is over", func() bool { return as("ada", "job", "list").code != 0 })
	for _, home := range homes { // only its owner may read a session's file
		info, err := os.Stat(home + "/paictl/clusters.yaml")
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}
