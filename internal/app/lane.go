package app

import (
	"context"
	"fmt"
	"net/http"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/copier"
	"github.com/objectferry/objectferry/internal/cos"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/s3store"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// Lane wires what one route's requests travel on, as the service does, for
// commands that only look. Every request to a store goes through looks, which is
// to let no write pass; nil is for commands that make none. The guards need none to
// judge, and a gate that closes stays closed. Lane opens no socket.
func Lane(ctx context.Context, cfg *config.Config, r *route.Route, looks func(http.RoundTripper) http.RoundTripper) (copier.Lane, error) {
	w, err := looking(ctx, cfg, looks)
	if err != nil {
		return copier.Lane{}, err
	}
	src, err := w.source(r)
	if err != nil {
		return copier.Lane{}, err
	}
	dst, dstGuard, err := w.destination(r)
	if err != nil {
		return copier.Lane{}, err
	}
	return copier.Lane{Route: r, Source: src.Source, SourceGuard: src.guard, Destination: dst, DestinationGuard: dstGuard}, nil
}

// Stores wires both sides of one route, as the service does, for a command that
// compares them. They have no guard; it opens no socket.
func Stores(ctx context.Context, cfg *config.Config, r *route.Route) (*cos.Source, *s3store.Store, error) {
	w, err := looking(ctx, cfg, nil)
	if err != nil {
		return nil, nil, err
	}
	src, err := w.source(r)
	if err != nil {
		return nil, nil, err
	}
	dst, _, err := w.destination(r)
	if err != nil {
		return nil, nil, err
	}
	return src.Source, dst, nil
}

// Logs wires the log buckets, with a guard each, for a command that only looks.
func Logs(ctx context.Context, cfg *config.Config) (*s3store.LogStore, map[string]*guard.Guard, error) {
	w, err := looking(ctx, cfg, nil)
	if err != nil {
		return nil, nil, err
	}
	return w.logs()
}

func looking(ctx context.Context, cfg *config.Config, looks func(http.RoundTripper) http.RoundTripper) (*wiring, error) {
	if looks == nil {
		looks = func(t http.RoundTripper) http.RoundTripper { return t }
	}
	w := &wiring{app: &App{}, cfg: cfg, tel: telemetry.Nop(), names: map[string]int{}, looks: looks}
	var err error
	if w.aws, err = awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(cfg.Region)); err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	return w, nil
}
