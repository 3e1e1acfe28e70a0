package ssh_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// writeKey creates a key file and returns the public key. The file is encrypted unless passphrase is empty.
func writeKey(t *testing.T, path, kind, passphrase string) cssh.PublicKey {
	t.Helper()
	var key any
	var err error
	switch kind {
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	require.NoError(t, err)
	block, err := cssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = cssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	signer, err := cssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return signer.PublicKey()
}

// startAgent serves n new keys on a socket, like ssh-agent.
func startAgent(t *testing.T, n int) (socket string, keys []cssh.PublicKey) {
	t.Helper()
	ring := agent.NewKeyring()
	for range n {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		require.NoError(t, err)
		require.NoError(t, ring.Add(agent.AddedKey{PrivateKey: private}))
	}
	list, err := ring.List()
	require.NoError(t, err)
	for _, k := range list {
		keys = append(keys, k)
	}
	socket = filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, c) }()
		}
	}()
	return socket, keys
}

func TestEveryWayToAuthenticateWorks(t *testing.T) {
	dir := t.TempDir()
	ed := writeKey(t, dir+"/ed", "ed25519", "")
	ec := writeKey(t, dir+"/ec", "ecdsa", "")
	rs := writeKey(t, dir+"/rsa", "rsa", "")
	locked := writeKey(t, dir+"/locked", "rsa", "open sesame")
	home := writeKey(t, dir+"/.ssh/id_ed25519", "ed25519", "")
	configured := writeKey(t, dir+"/configured", "ed25519", "")
	require.NoError(t, os.WriteFile(dir+"/config", []byte("Host 127.*\n  IdentityFile ~/configured\n"), 0o600))
	socket, agentKeys := startAgent(t, 12)
	prompt := func(string) (secret.String, error) { return "open sesame", nil }

	tests := map[string]struct {
		server sshtest.Config
		target func(*ssh.Target)
		option func(*ssh.Options)
		dials  int
	}{
		"nothing is asked":        {dials: 1},
		"a password":              {server: sshtest.Config{Password: "p'w $"}, dials: 1},
		"keyboard-interactive":    {server: sshtest.Config{Password: "pw", KeyboardInteractive: true}, dials: 1},
		"an ed25519 key":          {server: sshtest.Config{Keys: []cssh.PublicKey{ed}}, target: func(t *ssh.Target) { t.KeyFile = dir + "/ed" }, dials: 1},
		"an ecdsa key below home": {server: sshtest.Config{Keys: []cssh.PublicKey{ec}}, target: func(t *ssh.Target) { t.KeyFile = "~/ec" }, dials: 1},
		"an rsa key":              {server: sshtest.Config{Keys: []cssh.PublicKey{rs}}, target: func(t *ssh.Target) { t.KeyFile = dir + "/rsa" }, dials: 1},
		"a key with its passphrase": {server: sshtest.Config{Keys: []cssh.PublicKey{locked}}, dials: 1,
			target: func(t *ssh.Target) { t.KeyFile, t.KeyPassphrase = dir+"/locked", "open sesame" }},
		"a key whose passphrase is asked for": {server: sshtest.Config{Keys: []cssh.PublicKey{locked}}, dials: 1,
			target: func(t *ssh.Target) { t.KeyFile = dir + "/locked" }, option: func(o *ssh.Options) { o.Prompt = prompt }},
		"a password that is asked for": {server: sshtest.Config{Password: "open sesame"}, dials: 1,
			target: func(t *ssh.Target) { t.Password = "" }, option: func(o *ssh.Options) { o.Prompt = prompt }},
		"a key of ssh_config": {server: sshtest.Config{Keys: []cssh.PublicKey{configured}}, dials: 1, option: func(o *ssh.Options) { o.ConfigFile = dir + "/config" }},
		"a key in ~/.ssh":     {server: sshtest.Config{Keys: []cssh.PublicKey{home}}, dials: 1},
		"the agent's first key": {server: sshtest.Config{Keys: agentKeys[:1]}, dials: 1,
			option: func(o *ssh.Options) { o.AgentSocket = socket }},
		"the agent's last of twelve keys": {server: sshtest.Config{Keys: agentKeys[11:]}, dials: 2,
			option: func(o *ssh.Options) { o.AgentSocket = socket }},
		"the named key before those of the agent": {server: sshtest.Config{Keys: []cssh.PublicKey{ed}}, dials: 1,
			target: func(t *ssh.Target) { t.KeyFile = dir + "/ed" }, option: func(o *ssh.Options) { o.AgentSocket = socket }},
		"the password after a key that is refused": {server: sshtest.Config{Password: "pw", Keys: []cssh.PublicKey{ed}}, dials: 1,
			target: func(t *ssh.Target) { t.KeyFile = dir + "/ec" }},
		"the agent after key and password": {server: sshtest.Config{Keys: agentKeys[:1]}, dials: 1,
			target: func(t *ssh.Target) { t.KeyFile, t.Password = dir+"/ec", "x" }, option: func(o *ssh.Options) { o.AgentSocket = socket }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := sshtest.NewServer(t, test.server)
			o := sshtest.Options(t, s)
			o.Home = dir
			if test.option != nil {
				test.option(&o)
			}
			target := s.Target()
			if test.target != nil {
				test.target(&target)
			}
			_, err := sshtest.NewClient(t, o).Dial(t.Context(), target)
			require.NoError(t, err)
			assert.Equal(t, test.dials, s.Dials())
		})
	}
}

func TestARefusedLoginSaysWhatWasTriedAndWhatToDo(t *testing.T) {
	dir := t.TempDir()
	key := writeKey(t, dir+"/id", "ed25519", "")
	writeKey(t, dir+"/other", "ed25519", "")
	writeKey(t, dir+"/locked", "ed25519", "open sesame")
	tests := map[string]struct {
		server sshtest.Config
		target func(*ssh.Target)
		says   []string
		remedy string
	}{
		"a wrong password": {sshtest.Config{Password: "right"}, func(t *ssh.Target) { t.Password = "wr0ng" },
			[]string{"log in to node1 as root", "tried: password", "server allows: password"}, "ssh-username and ssh-password"},
		"a key that the host does not know": {sshtest.Config{Keys: []cssh.PublicKey{key}}, func(t *ssh.Target) { t.KeyFile, t.Password = dir+"/other", "wr0ng" },
			[]string{"tried: key " + dir + "/other", "server allows: publickey"}, "authorized_keys"},
		"no key where only keys count": {sshtest.Config{Keys: []cssh.PublicKey{key}}, func(t *ssh.Target) { t.Password = "wr0ng" },
			[]string{"tried: nothing", "server allows: publickey"}, "ssh-copy-id"},
		"no password where one is wanted": {sshtest.Config{Password: "right"}, func(t *ssh.Target) { t.Password = "" },
			[]string{"tried: nothing", "server allows: password"}, "give ssh-password"},
		"a locked key and nobody there": {sshtest.Config{Keys: []cssh.PublicKey{key}}, func(t *ssh.Target) { t.KeyFile = dir + "/locked" },
			[]string{"left out: key " + dir + "/locked has a passphrase"}, "authorized_keys"},
		"a wrong passphrase": {sshtest.Config{Keys: []cssh.PublicKey{key}}, func(t *ssh.Target) { t.KeyFile, t.KeyPassphrase = dir+"/locked", "wr0ng" },
			[]string{"the passphrase does not open it"}, "authorized_keys"},
		"a key file that is missing": {sshtest.Config{Keys: []cssh.PublicKey{key}}, func(t *ssh.Target) { t.KeyFile = dir + "/none" },
			[]string{"no such file"}, "authorized_keys"},
		"a wrong user": {sshtest.Config{User: "pai", Password: "right"}, func(t *ssh.Target) { t.User = "pia" },
			[]string{"log in to node1 as pia"}, "ssh-username"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.server.Name = "node1"
			s := sshtest.NewServer(t, test.server)
			target := s.Target()
			test.target(&target)
			_, err := sshtest.Dialer(t, s).Dial(t.Context(), target)
			require.ErrorIs(t, err, ssh.ErrAuth)
			for _, text := range test.says {
				assert.ErrorContains(t, err, text)
			}
			assert.NotContains(t, err.Error(), "wr0ng")
			assert.NotContains(t, err.Error(), "right")
			assert.Contains(t, hint.Of(err), test.remedy)
			assert.Equal(t, 1, s.Dials(), "a refusal is not tried again")
		})
	}
}

func TestAServerThatAsksForMoreThanThePasswordIsQuoted(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{Name: "node1", User: "pai", Password: "pw", KeyboardInteractive: true, Expired: true})
	_, err := sshtest.Dialer(t, s).Dial(t.Context(), s.Target())
	require.ErrorIs(t, err, ssh.ErrAuth)
	assert.ErrorContains(t, err, `the server also asks "You are required to change your password immediately (administrator enforced). New password:"`)
	assert.Contains(t, hint.Of(err), "log in to node1 as pai by hand, change the password there")
	assert.NotContains(t, err.Error(), "pw;")
}

func TestAValueOfTheClientsConfigurationIsNamedAsSuch(t *testing.T) {
	file := t.TempDir() + "/config"
	dial := func(text string, target ssh.Target, servers ...*sshtest.Server) error {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		o := sshtest.Options(t, servers...)
		o.ConfigFile = file
		_, err := sshtest.NewClient(t, o).Dial(t.Context(), target)
		require.Error(t, err)
		return err
	}
	err := dial("Host *\n  Port 1\n", ssh.Target{Address: "127.0.0.1"})
	require.ErrorContains(t, err, "127.0.0.1:1) (Port 1 in "+file+")")
	assert.Contains(t, hint.Of(err), "check Port in "+file+", or give ssh-port, and that sshd runs")
	err = dial("Host *\n  Port 22000\n", ssh.Target{Address: "127.0.0.1", Port: 1})
	assert.NotContains(t, err.Error(), file)
	assert.Contains(t, hint.Of(err), "check ssh-port, and that sshd runs")
	err = dial("Host *\n  Port 99999\n", ssh.Target{Address: "127.0.0.1"})
	assert.ErrorContains(t, err, "99999 is not a port (Port 99999 in "+file+")")
	err = dial("Host *\n  Port ssh\n", ssh.Target{Address: "127.0.0.1"})
	assert.ErrorContains(t, err, `"ssh" is not a port (Port ssh in `+file+")")
	err = dial("Host node1\n  HostName 127.0.0.1\n  Port 1\n", ssh.Target{Address: "node1"})
	require.ErrorContains(t, err, "(HostName 127.0.0.1, Port 1 in "+file+")")

	s := sshtest.NewServer(t, sshtest.Config{User: "pai", Password: "pw"})
	target := s.Target()
	target.User, target.Password = "", "wrong"
	err = dial("Host *\n  User ada\n", target, s)
	require.ErrorContains(t, err, "as ada (User ada in "+file+")")
	assert.Equal(t, "check User in "+file+", or give ssh-username and ssh-password", hint.Of(err))
}
