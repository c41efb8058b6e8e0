package config

import "time"

// Default is a configuration with every default and nothing that must be chosen.
func Default() *Config {
	return &Config{
		Copy:  Copy{Concurrency: 64, Memory: 1 << 30, PartSize: 16 << 20, MaxSize: 20 << 30},
		Parse: Parse{Concurrency: 8, Recent: Duration(5 * time.Minute), RecentKeys: 100_000},
		Retry: Retry{
			Receives: 8,
			Min:      Duration(5 * time.Second),
			Max:      Duration(15 * time.Minute),
			Wait:     Duration(20 * time.Second),
		},
		Guard: Guard{
			ProbeMin: Duration(5 * time.Second),
			ProbeMax: Duration(5 * time.Minute),
			Timeout:  Duration(30 * time.Second),
			MinRate:  64 << 10,
		},
		Drain: Duration(45 * time.Second),
		Admin: Admin{Listen: ":8080"},
		Log:   Logging{Level: "info"},
	}
}

// DefaultRoute is a route with every default and nothing that must be chosen.
func DefaultRoute() Route {
	return Route{
		Mode:        ModeCopy,
		MaxAge:      Duration(72 * time.Hour),
		Destination: Destination{SSE: SSENone, StorageClass: "STANDARD"},
	}
}
