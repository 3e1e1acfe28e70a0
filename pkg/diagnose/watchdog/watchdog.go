// Package watchdog measures values that no other exporter reports: the expiry of certificates of API servers, kubelets and other servers, whether
// the API responds to a pod, and the state of backups.
// In: the API server's address and the account of the pod, and targets of a configuration. Out: metrics for Prometheus.
package watchdog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Config is the configuration of the program. It is a JSON file.
type Config struct {
	// Targets lists servers outside of Kubernetes whose certificates are checked.
	Targets []Target `json:"targets"`
	// Interval is the time between two checks of the API's health and of backups. CertificateInterval is the time between two checks of all
	// certificates.
	Interval            Duration `json:"interval"`
	CertificateInterval Duration `json:"certificateInterval"`
	// Timeout is the time limit of one connection or one request.
	Timeout Duration `json:"timeout"`
	// Concurrency is the maximum number of simultaneous connections.
	Concurrency int `json:"concurrency"`
	// KubeletPort is the port of kubelets.
	KubeletPort int `json:"kubeletPort"`
}

// Target is a TLS server whose certificate is checked.
type Target struct {
	Name string `json:"name"`
	// Address is host:port. ServerName is the server name in the TLS handshake. If ServerName is empty, the host is used.
	Address    string `json:"address"`
	ServerName string `json:"serverName"`
}

// Duration is a time.Duration whose JSON form is a string such as "30s".
type Duration time.Duration

// UnmarshalJSON parses a string such as "30s".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("a duration is written as \"30s\": %w", err)
	}
	parsed, err := time.ParseDuration(s)
	*d = Duration(parsed)
	return err
}

// defaults returns a configuration that suits clusters of any size. Working servers respond within milliseconds, and only failed nodes take the whole
// timeout.
func defaults() Config {
	return Config{
		Interval:            Duration(15 * time.Second),
		CertificateInterval: Duration(5 * time.Minute),
		Timeout:             Duration(5 * time.Second),
		Concurrency:         100,
		KubeletPort:         10250,
	}
}

// ReadConfig reads the configuration from a file. If name is empty, it returns the defaults.
func ReadConfig(name string) (Config, error) {
	c := defaults()
	if name == "" {
		return c, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return c, err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("read %s: %w", name, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("read %s: more than one JSON value", name)
	}
	return c, c.check()
}

func (c Config) check() error {
	if c.Interval <= 0 || c.CertificateInterval <= 0 || c.Timeout <= 0 {
		return errors.New("interval, certificateInterval and timeout must be greater than zero")
	}
	if c.Concurrency < 1 {
		return errors.New("concurrency must be at least 1")
	}
	seen := map[string]bool{}
	for _, t := range c.Targets {
		if _, _, err := net.SplitHostPort(t.Address); err != nil {
			return fmt.Errorf("target %q: address %q is not host:port", t.Name, t.Address)
		}
		if t.Name == "" || seen[t.Name] {
			return fmt.Errorf("target %q: each target needs a different name", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

// Watchdog makes the measurements and stores the last results.
type Watchdog struct {
	config  Config
	api     API
	results *results
	access  string // the file with the password for its metrics
	log     func(msg string, args ...any)
}

// New returns a watchdog that has no measurements yet.
func New(c Config, api API, log func(msg string, args ...any)) *Watchdog {
	return &Watchdog{config: c, api: api, results: newResults(), log: log}
}

// Watch makes measurements until ctx ends. It checks the API's health and backups in a separate loop, so that nodes that don't respond never delay
// these checks.
func (w *Watchdog) Watch(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		every(ctx, time.Duration(w.config.Interval), func(ctx context.Context) {
			w.CheckHealth(ctx)
			w.CheckBackups(ctx)
		})
	}()
	every(ctx, time.Duration(w.config.CertificateInterval), w.CheckCertificates)
	<-done
}

// every calls f at once, and then at an interval until ctx ends. If a call takes longer than the interval, every skips the calls that are due in
// that time.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// CheckHealth checks whether the API server is ready, and records the result.
func (w *Watchdog) CheckHealth(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.config.Timeout))
	defer cancel()
	start := time.Now()
	err := w.api.Ready(ctx)
	if err != nil {
		w.log("the API server is not ready", "err", err)
	}
	w.results.setHealth(probe{target: "apiserver", took: time.Since(start), ok: err == nil})
}
