package main

import (
	"fmt"
	"log/slog"

	_ "golang.org/x/crypto/x509roots/fallback" // the image has no CA certificates
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	servertls "github.com/openpai/paictl/pkg/server/tls"
)

// publicAuthority returns the CA that signs certificates for the server's public names, or nil if ACME is off.
func publicAuthority(o *options, config *rest.Config, log *slog.Logger) (*servertls.ACME, error) {
	said := o.settings.ACME
	if !said.Enabled {
		return nil, nil
	}
	if o.tls != "" {
		return nil, fmt.Errorf("--tls names a certificate, and the settings an authority that signs one (acme.enabled): use one of them")
	}
	roots, err := servertls.Roots(said.CABundle)
	if err != nil {
		return nil, fmt.Errorf("acme.caBundle: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return servertls.NewACME(client, servertls.ACMEOptions{Directory: said.Directory, Email: said.Email, Roots: roots, Names: o.settings.PublicNames(), Log: log}), nil
}
