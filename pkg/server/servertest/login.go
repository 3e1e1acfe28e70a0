package servertest

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/client/login"
	"github.com/openpai/paictl/pkg/secret"
)

// CA returns the PEM certificate of the CA that has signed the server's certificate.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.TLS.Certificate().Raw})
}

// Login signs in a person as "paictl login" does. It stores the tokens in home, which is a folder for XDG_CONFIG_HOME. The stored cluster has the
// name of the person.
func (s *Server) Login(home, name string) {
	s.t.Helper()
	c, err := client.New(client.Options{URL: s.URL, CA: s.CA(), Version: "test"})
	require.NoError(s.t, err)
	pair, err := c.Password(s.t.Context(), name, secret.String(Password))
	require.NoError(s.t, err)
	store := login.Store{Path: filepath.Join(home, "paictl", "clusters.yaml")}
	require.NoError(s.t, store.Change(s.t.Context(), func(f *login.File) error {
		f.Clusters[name] = &login.Cluster{Server: s.URL, CA: string(s.CA()), User: name, Access: pair.Access, Refresh: pair.Refresh,
			Expires: time.Now().Add(time.Duration(pair.Lifetime) * time.Second)}
		return nil
	}))
}

// Dialled returns the TLS configuration of the server's client.
func (s *Server) Dialled() *tls.Config {
	return s.Client.Transport.(*http.Transport).TLSClientConfig.Clone()
}
