// Package watchdog measures values that no other exporter reports: when the certificates of the API servers, kubelets and other servers expire,
// whether the API responds to a pod, and the state of backups.
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

// Config is the program's configuration, as JSON.
type Config struct {
	// Targets are servers other than Kubernetes' servers.
	Targets []Target `json:"targets"`
	// Interval is how often the API's health is checked, CertificateInterval how often all
	// certificates are checked.
	Interval            Duration `json:"interval"`
	CertificateInterval Duration `json:"certificateInterval"`
	// Timeout limits one connection or one request.
	Timeout Duration `json:"timeout"`
	// Concurrency is how many connections are open at a time.
	Concurrency int `json:"concurrency"`
	// KubeletPort is the port of kubelets.
	KubeletPort int `json:"kubeletPort"`
}

// Target is a TLS server.
type Target struct {
	Name string `json:"name"`
	// Address is host:port. ServerName is the name to request if it isn't the host.
	Address    string `json:"address"`
	ServerName string `json:"serverName"`
}

// Duration is a time.Duration that is written in JSON as "30s".
type Duration time.Duration

// UnmarshalJSON parses "30s".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("a duration is written as \"30s\": %w", err)
	}
	parsed, err := time.ParseDuration(s)
	*d = Duration(parsed)
	return err
}

// defaults returns settings for a cluster of any size: live servers respond within milliseconds, and only failed nodes take the whole timeout.
func defaults() Config {
	return Config{
		Interval:            Duration(15 * time.Second),
		CertificateInterval: Duration(5 * time.Minute),
		Timeout:             Duration(5 * time.Second),
		Concurrency:         100,
		KubeletPort:         10250,
	}
}

// ReadConfig reads a file; an empty name means the defaults.
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

// Watchdog makes measurements, and keeps the last results.
type Watchdog struct {
	config  Config
	api     API
	results *results
	access  string // the file with the password for its metrics
	log     func(msg string, args ...any)
}

// New returns a watchdog without measurements.
func New(c Config, api API, log func(msg string, args ...any)) *Watchdog {
	return &Watchdog{config: c, api: api, results: newResults(), log: log}
}

// Watch measures until ctx ends. The API's health is checked in a separate loop, so that nodes that don't respond never delay it.
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

// every calls f at once and then at an interval. If a call takes longer, the calls that were due during it are skipped.
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

// CheckHealth checks whether the API server is ready.
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
