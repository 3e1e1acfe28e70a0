package sshtest

import (
	"bytes"
	"errors"

	cssh "golang.org/x/crypto/ssh"
)

var errNo = errors.New("sshtest: permission denied")

func (s *Server) serverConfig() *cssh.ServerConfig {
	c := &cssh.ServerConfig{MaxAuthTries: 6}
	who := func(m cssh.ConnMetadata) error {
		if s.c.User != "" && m.User() != s.c.User || s.faultNow().RefuseAuth {
			return errNo
		}
		return nil
	}
	if s.c.Password == "" && len(s.c.Keys) == 0 && !s.c.Fault.RefuseAuth {
		c.NoClientAuth = true
		c.NoClientAuthCallback = func(m cssh.ConnMetadata) (*cssh.Permissions, error) { return nil, who(m) }
	}
	if s.c.Password != "" && !s.c.KeyboardInteractive || s.c.Fault.RefuseAuth {
		c.PasswordCallback = func(m cssh.ConnMetadata, pw []byte) (*cssh.Permissions, error) {
			if string(pw) != s.c.Password {
				return nil, errNo
			}
			return nil, who(m)
		}
	}
	if s.c.KeyboardInteractive {
		c.KeyboardInteractiveCallback = func(m cssh.ConnMetadata, ask cssh.KeyboardInteractiveChallenge) (*cssh.Permissions, error) {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(answers) != 1 || answers[0] != s.c.Password {
				return nil, errNo
			}
			if s.c.Expired {
				_, _ = ask("", "You are required to change your password immediately (administrator enforced).", []string{"New password: "}, []bool{false})
				return nil, errNo
			}
			return nil, who(m)
		}
	}
	if len(s.c.Keys) > 0 {
		c.PublicKeyCallback = func(m cssh.ConnMetadata, key cssh.PublicKey) (*cssh.Permissions, error) {
			for _, k := range s.c.Keys {
				if bytes.Equal(k.Marshal(), key.Marshal()) {
					return nil, who(m)
				}
			}
			return nil, errNo
		}
	}
	for _, k := range s.c.HostKeys {
		c.AddHostKey(k)
	}
	return c
}
