// Command dex is an OpenID Connect issuer for tests. It runs Dex's own server, with a store in memory and with a directory as its backend. It is
// used instead of Dex's own program, which also has a gRPC API, whose module isn't published at this version.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/server/tokens"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
)

// settings configures the issuer.
type settings struct {
	Issuer string `json:"issuer"` // https://127.0.0.1:PORT/dex
	Listen string `json:"listen"`
	// Cert and Key are the files of the server's certificate.
	Cert string `json:"cert"`
	Key  string `json:"key"`
	// Clients lists the programs to which users sign in.
	Clients []struct {
		ID           string   `json:"id"`
		Secret       string   `json:"secret"`
		RedirectURIs []string `json:"redirectURIs"`
	} `json:"clients"`
	// LDAP is the configuration of the directory, in Dex's format.
	LDAP json.RawMessage `json:"ldap"`
}

// patient is a store that computes a refresh token before it takes the lock of the store in memory. Dex's update function reads the store again, and
// would deadlock while it holds the lock. That is safe here, because a client in tests sends only one request at a time with a token.
type patient struct{ storage.Storage }

// UpdateRefreshToken changes a refresh token. It calls change without holding the lock of the store.
func (p patient) UpdateRefreshToken(ctx context.Context, id string, change func(storage.RefreshToken) (storage.RefreshToken, error)) error {
	have, err := p.GetRefresh(ctx, id)
	if err != nil {
		return err
	}
	next, err := change(have)
	if err != nil {
		return err
	}
	return p.Storage.UpdateRefreshToken(ctx, id, func(storage.RefreshToken) (storage.RefreshToken, error) { return next, nil })
}

func main() {
	file := flag.String("settings", "", "file of JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file); err != nil {
		fmt.Fprintln(os.Stderr, "dex:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s := settings{}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var clients []storage.Client
	for _, c := range s.Clients {
		clients = append(clients, storage.Client{ID: c.ID, Secret: c.Secret, RedirectURIs: c.RedirectURIs, Name: c.ID})
	}
	store := storage.WithStaticClients(patient{memory.New(log)}, clients)
	store = storage.WithStaticConnectors(store, []storage.Connector{{ID: "ldap", Type: "ldap", Name: "LDAP", Config: s.LDAP}})
	keys := signer.LocalConfig{KeysRotationPeriod: "6h"}
	sign, err := keys.Open(ctx, store, time.Hour, time.Now, log)
	if err != nil {
		return err
	}
	// With these settings, a repeated request gets a new token instead of the earlier response.
	policy, err := tokens.NewRefreshTokenPolicy(log, false, "", "", "0s")
	if err != nil {
		return err
	}
	h, err := server.NewServer(ctx, server.Config{Issuer: s.Issuer, Storage: store, SkipApprovalScreen: true, IDTokensValidFor: time.Hour, RefreshTokenPolicy: policy, Logger: log, Signer: sign})
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	if err := srv.ServeTLS(l, s.Cert, s.Key); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
