package backups

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/ssh"
)

// Config is the configuration that the chart writes into a ConfigMap. It contains no secrets.
type Config struct {
	// To is the target of the backups: ssh://... or s3://....
	To         string   `json:"to"`
	Recipients []string `json:"recipients"`
	// Prune deletes expired backups after each new backup. Keep defines which backups have expired.
	Prune bool `json:"prune"`
	Keep  struct {
		Last   int `json:"last"`
		Daily  int `json:"daily"`
		Weekly int `json:"weekly"`
	} `json:"keep"`
	S3 struct {
		Endpoint    string `json:"endpoint"`
		Region      string `json:"region"`
		AccessKeyID string `json:"accessKeyId"`
		CA          string `json:"ca"` // PEM
	} `json:"s3"`
	SSH struct {
		KnownHosts string `json:"knownHosts"`
	} `json:"ssh"`
}

// Names of files in the credentials folder, which the chart mounts. Each file is optional.
const (
	fileSecretKey    = "s3.secretAccessKey"
	fileSessionToken = "s3.sessionToken"
	filePrivateKey   = "ssh.privateKey"
)

// readConfig reads and checks the configuration, without connecting to other machines.
func readConfig(file string) (*Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	c := &Config{}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(c); err != nil {
		return nil, fmt.Errorf("read the settings in %s: %w", file, err)
	}
	switch {
	case len(c.Recipients) == 0:
		return nil, hint.Errorf("make a key pair with age-keygen, and write its public key into recipients", "no backup is made without recipients: anyone who can read a backup owns the cluster")
	case !strings.Contains(c.To, "://"):
		return nil, hint.Errorf("write ssh://USER@HOST/FOLDER or s3://BUCKET/PREFIX into to", "%q is not a place outside of the cluster", c.To)
	}
	return c, nil
}

func (c *Config) keep() backup.Keep {
	return backup.Keep{Last: c.Keep.Last, Daily: c.Keep.Daily, Weekly: c.Keep.Weekly}
}

// open returns the target. It writes the files that the target needs into own, a private folder of this program.
func (c *Config) open(credentials, own string) (target.Target, error) {
	s3 := target.S3{Endpoint: c.S3.Endpoint, Region: c.S3.Region}
	if c.S3.CA != "" {
		s3.CA = filepath.Join(own, "ca.pem")
		if err := os.WriteFile(s3.CA, []byte(c.S3.CA), 0o600); err != nil {
			return nil, err
		}
	}
	env := map[string]string{"AWS_ACCESS_KEY_ID": c.S3.AccessKeyID}
	for name, file := range map[string]string{"AWS_SECRET_ACCESS_KEY": fileSecretKey, "AWS_SESSION_TOKEN": fileSessionToken} {
		text, err := access.Read(filepath.Join(credentials, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		env[name] = text
	}
	// Take the credentials only from env, and not from the environment of the pod.
	s3.Getenv = func(name string) string { return env[name] }
	return target.Open(c.To, target.Options{S3: s3, Dial: func(m target.Machine) (*ssh.Client, ssh.Target, error) {
		return c.dial(m, credentials, own)
	}})
}

func (c *Config) dial(m target.Machine, credentials, own string) (*ssh.Client, ssh.Target, error) {
	t := ssh.Target{Address: m.Host, Port: m.Port, User: m.User, KeyFile: filepath.Join(credentials, filePrivateKey), KnownHosts: filepath.Join(own, "known_hosts")}
	switch _, err := os.Stat(t.KeyFile); {
	case m.User == "":
		return nil, t, hint.Errorf("write ssh://USER@HOST/FOLDER into to", "%s names no user", c.To)
	case c.SSH.KnownHosts == "":
		return nil, t, hint.Errorf("write the output of ssh-keyscan into ssh.knownHosts, after comparing it with the machine's own key", "the key of %s isn't known", m.Host)
	case err != nil:
		return nil, t, hint.Errorf("write the private key into ssh.privateKey", "log in to %s: %w", m.Host, err)
	}
	if err := os.WriteFile(t.KnownHosts, []byte(c.SSH.KnownHosts), 0o600); err != nil {
		return nil, t, err
	}
	return ssh.NewClient(ssh.Options{Home: own, LocalUser: "root", ConfigFile: ssh.None, AgentSocket: ssh.None, SystemKnownHosts: ssh.None, HostKeys: ssh.HostKeyStrict}), t, nil
}
