package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/server/settings"
)

func TestOneCertificateAtATime(t *testing.T) {
	o := &options{settings: settings.Default()}
	none, err := publicAuthority(o, &rest.Config{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Nil(t, none)
	o.settings.ACME = settings.ACME{Enabled: true, CABundle: "nothing"}
	_, err = publicAuthority(o, &rest.Config{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "acme.caBundle")
	o.tls = "/etc/pai-tls"
	_, err = publicAuthority(o, &rest.Config{}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "use one of them")
}
