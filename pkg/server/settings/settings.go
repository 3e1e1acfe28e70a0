// Package settings reads the settings that pai-server gets from its chart. In: the file that the chart creates from the section rest-server. Out:
// complete and valid settings. The settings contain no secrets.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"
)

// Settings holds the settings of the section rest-server.
type Settings struct {
	// Names holds the names and addresses that people use for the server. Addresses holds the addresses of the machines on which the server listens.
	// ServiceNames holds the server's names inside the cluster.
	Names        []string `json:"names"`
	Addresses    []string `json:"addresses"`
	ServiceNames []string `json:"serviceNames"`
	// Port is the server's public port.
	Port int `json:"port"`
	// TrustedProxies lists the networks whose X-Forwarded-For headers are trusted.
	TrustedProxies []netip.Prefix `json:"trustedProxies"`

	Tokens Tokens `json:"tokens"`
	Limits Limits `json:"limits"`
	SignIn SignIn `json:"signIn"`
	// ACME is the public CA that signs certificates for Names.
	ACME ACME `json:"acme"`
	// Door holds the services whose pages are proxied for signed-in users. The key is the first part of a service's path.
	Door map[string]Service `json:"door"`
	// Proxy is the origin of the proxied pages.
	Proxy Proxy `json:"proxy"`
	// Alerts is the Alertmanager from which the API reads alerts, even if its pages aren't proxied.
	Alerts AlertManager `json:"alerts"`
}

// AlertManager configures the connection to Alertmanager.
type AlertManager struct {
	// URL is Alertmanager's address inside the cluster. It is "" if the cluster has no Alertmanager.
	URL string `json:"url"`
	// Password makes the server send the password of the platform's own services to Alertmanager.
	Password bool `json:"password"`
}

// Tokens configures the lifetimes of tokens and keys.
type Tokens struct {
	BrowserHours int `json:"browserHours"`
	RefreshDays  int `json:"refreshDays"`
	RotateDays   int `json:"rotateDays"`
}

// Limits configures the maximum number of requests of one client.
type Limits struct {
	PerMinute      int `json:"perMinute"`      // requests from an address without a token
	PerTokenMinute int `json:"perTokenMinute"` // requests with one token
	ChangesPerHour int `json:"changesPerHour"` // changes of one person, which the audit records
	SubmitPerHour  int `json:"submitPerHour"`  // jobs of one person
	LiveJobs       int `json:"liveJobs"`       // unfinished jobs of one person
	LiveTasks      int `json:"liveTasks"`      // tasks of these
	Streams        int `json:"streams"`        // open streams at a time
}

// Default returns the settings for an empty section.
func Default() *Settings {
	s := &Settings{
		Port:   443,
		Proxy:  Proxy{Port: 8444},
		Tokens: Tokens{BrowserHours: 24, RefreshDays: 30, RotateDays: 30},
		Limits: Limits{PerMinute: 600, PerTokenMinute: 3000, ChangesPerHour: 6000, SubmitPerHour: 3600, LiveJobs: 2000, LiveTasks: 10000, Streams: 2000},
	}
	s.SignIn.Password.Enabled = true
	s.SignIn.Recheck = Recheck{EverySeconds: 30, GraceMinutes: 60}
	return s
}

// Read reads the settings from a file. Missing settings have their defaults. Read returns an error for unknown fields.
func Read(file string) (*Settings, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	s := Default()
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(s); err != nil {
		return nil, fmt.Errorf("read the settings in %s: %w", file, err)
	}
	if in.More() {
		return nil, fmt.Errorf("read the settings in %s: there is more behind them", file)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("read the settings in %s: %w", file, err)
	}
	return s, nil
}

func (s *Settings) check() error {
	var wrong []error
	for _, n := range []struct {
		name  string
		value int
	}{
		{"port", s.Port}, {"tokens.browserHours", s.Tokens.BrowserHours}, {"tokens.refreshDays", s.Tokens.RefreshDays}, {"tokens.rotateDays", s.Tokens.RotateDays},
		{"limits.perMinute", s.Limits.PerMinute}, {"limits.perTokenMinute", s.Limits.PerTokenMinute},
		{"limits.changesPerHour", s.Limits.ChangesPerHour}, {"limits.submitPerHour", s.Limits.SubmitPerHour}, {"limits.liveJobs", s.Limits.LiveJobs}, {"limits.liveTasks", s.Limits.LiveTasks}, {"limits.streams", s.Limits.Streams},
	} {
		if n.value < 1 {
			wrong = append(wrong, fmt.Errorf("%s: %d is less than 1", n.name, n.value))
		}
	}
	wrong = append(wrong, s.SignIn.check(s.URL() != "")...)
	if s.Port > 65535 {
		wrong = append(wrong, fmt.Errorf("port: %d is not a port", s.Port))
	}
	return errors.Join(slices.Concat(wrong, s.checkReturnPages(), s.checkDoor(), s.checkProxy(), checkURL("alerts.url", s.Alerts.URL), s.checkACME())...)
}

// Hosts returns all names and addresses that certificates of the server must contain.
func (s *Settings) Hosts() []string {
	var out []string
	for _, some := range [][]string{s.Names, s.Addresses, s.ServiceNames} {
		out = append(out, some...)
	}
	if s.Proxy.Name != "" {
		out = append(out, s.Proxy.Name)
	}
	return out
}

// URL returns the server's address for people. It contains the first name, or the address of the first machine if no name is configured. It returns
// "" without names and addresses.
func (s *Settings) URL() string {
	for _, some := range [][]string{s.Names, s.Addresses} {
		if len(some) > 0 {
			return Address(some[0], s.Port)
		}
	}
	return ""
}

// Address returns the URL of a host and a port.
func Address(host string, port int) string {
	if port == 443 {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
			host = "[" + host + "]"
		}
		return "https://" + host
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// BrowserLifetime returns the lifetime of a browser's token.
func (t *Tokens) BrowserLifetime() time.Duration { return time.Duration(t.BrowserHours) * time.Hour }

// RefreshLifetime returns how long an unused refresh token stays valid.
func (t *Tokens) RefreshLifetime() time.Duration {
	return time.Duration(t.RefreshDays) * 24 * time.Hour
}

// KeyLifetime returns how long one key signs tokens.
func (t *Tokens) KeyLifetime() time.Duration { return time.Duration(t.RotateDays) * 24 * time.Hour }
