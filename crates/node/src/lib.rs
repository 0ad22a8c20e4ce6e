//! Role assembly: which blocks run on which threads.
