//! The system variables that concern logins. Sql blocks set them, recv blocks read them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! login_settings {
    ($($(#[$doc:meta])* $name:ident = $default:literal;)*) => {
        /// The system variables that concern logins, as numbers. Each is read alone, so a reader may see a
        /// new value of one and an old one of another.
        #[derive(Debug)]
        pub struct LoginSettings {
            $($(#[$doc])* pub $name: AtomicU64,)*
        }

        impl Default for LoginSettings {
            fn default() -> LoginSettings {
                LoginSettings { $($name: AtomicU64::new($default),)* }
            }
        }

        impl LoginSettings {
            /// The variable with this name.
            pub(crate) fn named(&self, name: &str) -> Option<&AtomicU64> {
                match name {
                    $(stringify!($name) => Some(&self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

login_settings! {
    /// Failed logins of an account before each further one is delayed; 0 for no delays.
    connection_control_failed_connections_threshold = 3;
    /// The longest delay in milliseconds.
    connection_control_max_connection_delay = 2_147_483_647;
    /// The delay for each failed login above the threshold, in milliseconds.
    connection_control_min_connection_delay = 1_000;
    /// Days after which a password expires; 0 for never.
    default_password_lifetime = 0;
    /// Whether a client that cannot change an expired password is refused.
    disconnect_on_expired_password = 1;
    /// How often FLUSH PRIVILEGES was executed. Not a variable.
    flushes = 0;
}

impl LoginSettings {
    /// The value of one setting.
    pub fn get(setting: &AtomicU64) -> u64 {
        setting.load(Ordering::Relaxed)
    }
}
