// Package httpserver serves HTTP to anyone who can connect, within limits.
// In: a listener, a handler. Out: responses. Memory stays within the limits, and each network can connect, no matter how many connections other
// networks open.
package httpserver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Options are the limits of a server.
type Options struct {
	// Connections is the maximum number of simultaneous connections.
	Connections int
	// Proxies are networks whose addresses represent many clients. Connections from Proxies and from this machine don't count towards a network's
	// share.
	Proxies []netip.Prefix
	// Header is the maximum size of a request's header in bytes. Zero means 16 KiB.
	Header int
	// Read and Write limit the time to read a request and to write its response; zero means no limit, for handlers that set deadlines.
	Read, Write time.Duration
	// Grace is how long the responses in progress may take when the server stops. Zero means 5 seconds.
	Grace time.Duration
	// Ending is called when the server stops accepting requests; it may be nil.
	Ending func()
	// Log receives debug messages about connections that the server closed; it may be nil.
	Log *slog.Logger
}

// Small returns the limits for a program that only serves health checks and metrics. The headers of all its connections together take at most
// half a megabyte.
func Small() Options {
	return Options{Connections: 64, Header: 8 << 10, Read: 10 * time.Second, Write: 30 * time.Second}
}

const (
	// headerTime is how long a client may take for the header of a request.
	headerTime = 5 * time.Second
	// idleTime is how long a connection stays open without a request.
	idleTime = 2 * time.Minute
)

// HTTP returns a server with the limits in o, except the limits on connections. For these, the caller must pass the listener to Limit.
func HTTP(h http.Handler, o Options) *http.Server {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: o.Read, WriteTimeout: o.Write, IdleTimeout: idleTime,
		MaxHeaderBytes: cmp.Or(o.Header, 16<<10), ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Serve serves requests on a listener until ctx ends, and then completes the responses in progress.
func Serve(ctx context.Context, l net.Listener, h http.Handler, o Options) error {
	srv := HTTP(h, o)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		if o.Ending != nil {
			o.Ending()
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(o.Grace, 5*time.Second))
		defer cancel()
		stopped <- srv.Shutdown(grace)
	})
	if err := srv.Serve(Limit(l, o)); !errors.Is(err, http.ErrServerClosed) {
		stop()
		_ = srv.Close()
		return err
	}
	return <-stopped
}
